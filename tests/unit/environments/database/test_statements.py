"""Several statements in one reply, as each published version runs them, and the names that a statement may use."""

import pytest

from environments.database.dataset import Table
from environments.database.engines.sqlite import SqliteEngine
from environments.database.session import OUT_OF_SYNC, StatementRunner, Way
from environments.database.statements import kept, one_line, split, unqualified

TABLE = Table(name="t", columns=("a", "b"), rows=(("1", "x"), ("2", "y")))
CHANGE = "UPDATE t SET a = '9' WHERE a = '1'"
BEFORE, AFTER = "[('1', 'x'), ('2', 'y')]", "[('9', 'x'), ('2', 'y')]"


async def ran(way: Way, sql: str) -> tuple[str, str]:
    """The observation of SQL, and the table after it."""
    async with SqliteEngine(5).session(TABLE) as session:
        return await StatementRunner(session, way, "t").run(sql), await session.run("SELECT * FROM t")


@pytest.mark.parametrize(
    ("sql", "v02", "fc", "each"),
    [
        ("", ("[]", BEFORE), ("[]", BEFORE), ("[]", BEFORE)),
        ("SELECT 1;;", ("[(1,)]", BEFORE), ("[(1,)]", BEFORE), ("[(1,)]", BEFORE)),
        ("SELECT 1; -- c", (OUT_OF_SYNC, BEFORE), ("[(1,)]", BEFORE), ("[(1,)]", BEFORE)),
        ("SELECT 1; SELECT 2", (OUT_OF_SYNC, BEFORE), ("[(1,)]", BEFORE), ("[(1,)]\n[(2,)]", BEFORE)),
        (f"{CHANGE}; SELECT 2;", (OUT_OF_SYNC, BEFORE), ("[]", AFTER), ("[]\n[(2,)]", AFTER)),
        (f"{CHANGE}; COMMIT", (OUT_OF_SYNC, AFTER), ("[]", AFTER), ("[]\n[]", AFTER)),
        (f"START TRANSACTION; {CHANGE}; COMMIT;", (OUT_OF_SYNC, AFTER), ("[]", AFTER), ("[]\n[]\n[]", AFTER)),
        (f"BEGIN; {CHANGE}; ROLLBACK;", (OUT_OF_SYNC, BEFORE), ("[]", BEFORE), ("[]\n[]\n[]", BEFORE)),
        (f"{CHANGE}; START TRANSACTION; SELECT 1", (OUT_OF_SYNC, AFTER), ("[]", AFTER), ("[]\n[]\n[(1,)]", AFTER)),
        (f"SAVEPOINT s; {CHANGE}; ROLLBACK TO s", (OUT_OF_SYNC, BEFORE), ("[]", BEFORE), ("[]\n[]\n[]", BEFORE)),
        ("SELECT a FROM t.t WHERE t.t.a = '1'", ("[('1',)]", BEFORE), ("[('1',)]", BEFORE), ("[('1',)]", BEFORE)),
    ],
)  # fmt: skip
async def test_statements_are_run_in_each_way(sql: str, v02: object, fc: object, each: object) -> None:
    assert [await ran(way, sql) for way in ("v0.2", "fc", "each")] == [v02, fc, each]


async def test_a_statement_that_fails_ends_the_others() -> None:
    wrong = "UPDATE t SET zz = '1'"
    for way, first, table in (("v0.2", OUT_OF_SYNC, BEFORE), ("fc", "1 (HY000): no such column: zz", AFTER)):
        assert await ran(way, f"{CHANGE}; {wrong}; COMMIT") == (first, table)  # type: ignore[arg-type]
    for way in ("v0.2", "fc", "each"):
        assert await ran(way, f"{wrong}; {CHANGE}; COMMIT") == ("1 (HY000): no such column: zz", BEFORE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("SELECT ';', \";\", `;` -- ;\n", ["SELECT ';', \";\", `;` -- ;"]),
        ("SELECT 'it''s; \\'; '; SELECT /* ; */ 2 # ;", ["SELECT 'it''s; \\'; '", "SELECT /* ; */ 2 # ;"]),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        (" ; ", None),
        ("SELECT 1; ;", ["SELECT 1"]),
        ("BEGIN NOT ATOMIC SELECT 1; SELECT 2; END", ["BEGIN NOT ATOMIC SELECT 1; SELECT 2; END"]),
        ("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @a=1; SET @b=2", None),
    ],
)
def test_statements_end_at_semicolons_outside_of_texts(sql: str, parts: list[str] | None) -> None:
    assert split(sql) == (parts or [sql])


def test_a_change_stays_where_something_commits_it() -> None:
    assert kept([CHANGE, "COMMIT", CHANGE], to_the_end=False) == [True, True, False]
    assert kept([CHANGE, "/* now */ create table k (a int)", CHANGE], to_the_end=False) == [True, True, False]
    assert kept(["SET autocommit = 1", CHANGE, "SELECT 1"], to_the_end=False) == [True] * 3
    assert kept([CHANGE, "ROLLBACK", CHANGE], to_the_end=True) == [False, True, True]
    assert kept([CHANGE, "SAVEPOINT s", CHANGE, "ROLLBACK TO s"], to_the_end=True) == [True, False, False, True]
    assert kept([CHANGE, "ROLLBACK TO s"], to_the_end=True) == [True, True]
    assert kept([CHANGE, "UNLOCK TABLES"], to_the_end=False) == [False, False]
    assert kept(["LOCK TABLES t WRITE", CHANGE, "UNLOCK TABLES"], to_the_end=False) == [True] * 3


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT `t x`.a, `t x`.`t x`.b FROM `t x`.`t x`", "SELECT `t x`.a, `t x`.b FROM `t x`"),
        ("SELECT 'FROM `t x`.`t x`' -- FROM `t x`.`t x`", "SELECT 'FROM `t x`.`t x`' -- FROM `t x`.`t x`"),
        ("INSERT INTO `t x` . `t x` VALUES (1)", "INSERT INTO `t x` VALUES (1)"),
        ("USE `t x`", "DO 0"),
        ("SHOW TABLES FROM `t x`", "SHOW TABLES"),
        ("SHOW COLUMNS FROM `t x` IN `t x`", "SHOW COLUMNS FROM `t x`"),
        ("SELECT `t x`.`t x` FROM `t x`", "SELECT `t x`.`t x` FROM `t x`"),
        ("SELECT * FROM other.`t x`", "SELECT * FROM other.`t x`"),
    ],
)
def test_the_name_of_the_database_may_be_the_tables(sql: str, read: str) -> None:
    assert unqualified(sql, "t x") == read


def test_line_breaks_become_blanks_but_for_those_that_end_a_remark() -> None:
    assert one_line("-- a\nSELECT 'x\ny',\n1 # b\n+ 1") == "-- a\nSELECT 'x y', 1 # b\n+ 1"
