; The rules of Proctor's own household games. Actions and predicates have the names and arguments of ALFWorld's, so that
; their games and these can be played by the same engines.

(define (domain alfred)
    (:requirements :adl :typing)

    (:types agent location receptacle object rtype otype)

    (:predicates
        (atLocation ?a - agent ?l - location)
        (receptacleAtLocation ?r - receptacle ?l - location)
        (objectAtLocation ?o - object ?l - location)
        (receptacleType ?r - receptacle ?t - rtype)
        (objectType ?o - object ?t - otype)
        (canContain ?rt - rtype ?ot - otype)
        (openable ?r - receptacle)
        (opened ?r - receptacle)
        (inReceptacle ?o - object ?r - receptacle)
        (isReceptacleObject ?o - object)
        (inReceptacleObject ?inner - object ?outer - object)
        (holds ?a - agent ?o - object)
        (holdsAny ?a - agent)
        (pickupable ?o - object)
        (cleanable ?o - object)
        (isClean ?o - object)
        (heatable ?o - object)
        (isHot ?o - object)
        (coolable ?o - object)
        (isCool ?o - object)
        (toggleable ?o - object)
        (isOn ?o - object)
        (isToggled ?o - object)
        (sliceable ?o - object)
        (isSliced ?o - object)
        (checked ?r - receptacle)
    )

    ; What only tells something leaves its mark in `checked`, which nothing asks for.
    (:action look
        :parameters (?a - agent ?l - location)
        :precondition (atLocation ?a ?l)
        :effect (checked ?l)
    )

    (:action inventory
        :parameters (?a - agent)
        :precondition ()
        :effect (checked ?a)
    )
@HELP@
    (:action examineReceptacle
        :parameters (?a - agent ?r - receptacle)
        :precondition (exists (?l - location) (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l)))
        :effect (checked ?r)
    )

    ; The comma makes `location,` of the type, which has no objects: as in ALFWorld, only what is held can be examined.
    (:action examineObject
        :parameters (?a - agent ?o - object)
        :precondition (or
            (exists (?l - location, ?r - receptacle)
                (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r))
            )
            (holds ?a ?o)
        )
        :effect (checked ?o)
    )

    (:action GotoLocation
        :parameters (?a - agent ?lStart - location ?lEnd - location ?r - receptacle)
        :precondition (and (atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd))
        :effect (and (not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd))
    )

    (:action OpenObject
        :parameters (?a - agent ?l - location ?r - receptacle)
        :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (openable ?r) (not (opened ?r)))
        :effect (opened ?r)
    )

    (:action CloseObject
        :parameters (?a - agent ?l - location ?r - receptacle)
        :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (openable ?r) (opened ?r))
        :effect (not (opened ?r))
    )

    (:action PickupObject
        :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
        :precondition (and
            (not (holdsAny ?a))
            (atLocation ?a ?l)
            (receptacleAtLocation ?r ?l)
            (or (not (openable ?r)) (opened ?r))
            (inReceptacle ?o ?r)
            (pickupable ?o)
        )
        :effect (and
            (not (inReceptacle ?o ?r))
            (not (objectAtLocation ?o ?l))
            (holds ?a ?o)
            (holdsAny ?a)
        )
    )

    (:action PutObject
        :parameters (?a - agent ?l - location ?o - object ?r - receptacle ?ot - otype ?rt - rtype)
        :precondition (and
            (holds ?a ?o)
            (atLocation ?a ?l)
            (receptacleAtLocation ?r ?l)
            (or (not (openable ?r)) (opened ?r))
            (objectType ?o ?ot)
            (receptacleType ?r ?rt)
            (canContain ?rt ?ot)
        )
        :effect (and
            (not (holds ?a ?o))
            (not (holdsAny ?a))
            (inReceptacle ?o ?r)
            (objectAtLocation ?o ?l)
        )
    )

    (:action CleanObject
        :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
        :precondition (and
            (holds ?a ?o)
            (cleanable ?o)
            (atLocation ?a ?l)
            (receptacleAtLocation ?r ?l)
            (or (receptacleType ?r SinkType) (receptacleType ?r SinkBasinType))
        )
        :effect (isClean ?o)
    )

    (:action HeatObject
        :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
        :precondition (and
            (holds ?a ?o)
            (heatable ?o)
            (atLocation ?a ?l)
            (receptacleAtLocation ?r ?l)
            (receptacleType ?r MicrowaveType)
        )
        :effect (and (not (isCool ?o)) (isHot ?o))
    )

    (:action CoolObject
        :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
        :precondition (and
            (holds ?a ?o)
            (coolable ?o)
            (atLocation ?a ?l)
            (receptacleAtLocation ?r ?l)
            (receptacleType ?r FridgeType)
        )
        :effect (and (not (isHot ?o)) (isCool ?o))
    )

    (:action ToggleObject
        :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
        :precondition (and (toggleable ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r))
        :effect (and
            (when (isOn ?o) (not (isOn ?o)))
            (when (not (isOn ?o)) (isOn ?o))
            (isToggled ?o)
        )
    )

    (:action SliceObject
        :parameters (?a - agent ?l - location ?co - object ?ko - object)
        :precondition (and
            (holds ?a ?ko)
            (or (objectType ?ko KnifeType) (objectType ?ko ButterKnifeType))
            (atLocation ?a ?l)
            (objectAtLocation ?co ?l)
            (sliceable ?co)
        )
        :effect (isSliced ?co)
    )
)
