"""Who may see the pages: tokens, cookies, and requests of other web sites."""

from html import unescape
from pathlib import Path

import httpx
import pytest

from eval_client.view.access import COOKIE, COOKIE_S, TRIES, TRIES_S, ViewAccess
from eval_client.view.app import build_app
from eval_client.view.pages.login import own_path
from eval_client.view.runs import FolderRuns
from proctor.config.tokens import AccessTokens
from tests.unit.eval_client.view.conftest import ORIGIN, Client

TOKEN = "a-long-random-token-of-the-viewer"
NAVIGATES = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(clock: Clock) -> ViewAccess:
    return ViewAccess(AccessTokens(TOKEN), clock=clock)


def test_a_cookie_is_not_the_token_expires_and_ends_with_a_logout(access: ViewAccess, clock: Clock) -> None:
    cookie, other = access.log_in(TOKEN), access.log_in(TOKEN)
    assert cookie is not None
    assert other is not None
    assert cookie != other
    assert TOKEN not in cookie
    assert access.is_valid(cookie)
    access.log_out(cookie)
    assert (access.is_valid(cookie), access.is_valid(other)) == (False, True)
    assert ViewAccess(AccessTokens(TOKEN), clock=clock).is_valid(other), "a viewer that is started again knows it"
    assert not ViewAccess(AccessTokens(TOKEN + "x"), clock=clock).is_valid(other)
    clock.now += COOKIE_S
    assert not access.is_valid(other)


@pytest.mark.parametrize("forged", ["", ".", "9999999999.00.00", "9999999999..", "٣.a.b", "9" * 40 + ".a.b"])
def test_a_forged_cookie_is_refused(access: ViewAccess, forged: str) -> None:
    assert not access.is_valid(forged)


def test_a_changed_expiry_is_refused(access: ViewAccess) -> None:
    cookie = access.log_in(TOKEN) or ""
    expires, _, rest = cookie.partition(".")
    assert not access.is_valid(f"{int(expires) + 1}.{rest}")


def test_many_wrong_logins_must_wait(access: ViewAccess, clock: Clock) -> None:
    for _ in range(TRIES):
        assert access.wait_s() == 0
        assert access.log_in("wrong") is None
    assert access.wait_s() == TRIES_S
    clock.now += TRIES_S
    assert access.wait_s() == 0


async def test_with_a_token_all_but_health_login_and_assets_needs_it(client: Client) -> None:
    async with client(TOKEN) as viewer:
        for path in ("/", "/runs/first", "/runs/first/trials/0", "/api/v1/runs", "/nothing"):
            refused = await viewer.get(path)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            wrong = await viewer.get(path, headers={"authorization": "Bearer wrong"})
            assert wrong.status_code == 401
        assert (await viewer.get("/healthz")).status_code == 200
        login = await viewer.get("/login")
        asset = login.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
        assert (login.status_code, (await viewer.get(asset)).status_code) == (200, 200)
        admitted = await viewer.get("/runs/first", headers={"authorization": f"Bearer {TOKEN}"})
        assert admitted.status_code == 200


async def test_people_log_in_and_come_to_the_page_that_they_asked_for(client: Client) -> None:
    async with client(TOKEN) as viewer:
        sent = await viewer.get("/runs/first/trials?agent=gpt", headers={"accept": "text/html"})
        assert sent.status_code == 303
        form = await viewer.get(sent.headers["location"])
        asked = form.text.partition('name="next" value="')[2].partition('"')[0]
        assert asked == "/runs/first/trials?agent=gpt"
        wrong = await viewer.post("/login", data={"token": "wrong", "next": asked})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
        done = await viewer.post("/login", data={"token": TOKEN, "next": asked})
        assert (done.status_code, done.headers["location"]) == (303, asked)
        flags = done.headers["set-cookie"]
        assert all(flag in flags for flag in ("HttpOnly", "SameSite=lax", "Path=/"))
        assert TOKEN not in flags
        assert (await viewer.get("/runs/first")).status_code == 200
        stolen = {"cookie": f"{COOKIE}={viewer.cookies[COOKIE]}"}
        await viewer.post("/login", data={"out": "1"})
        assert (await viewer.get("/runs/first", headers=stolen)).status_code == 401


async def test_each_token_is_a_way_in_and_nothing_near_it(client: Client) -> None:
    other = "another-token-that-opens-it-too"
    async with client(TOKEN, other) as viewer:
        for given in (f"Bearer {TOKEN}", f"Bearer {other}", f"Bearer {TOKEN[:-1]}", f"bearer {TOKEN}", "Bearer "):
            status = (await viewer.get("/runs/first", headers={"authorization": given})).status_code
            assert status == (200 if given in (f"Bearer {TOKEN}", f"Bearer {other}") else 401)
        for given in (TOKEN, other, TOKEN[:-1], TOKEN + "x", ""):
            status = (await viewer.post("/login", data={"token": given})).status_code
            assert status == (303 if given in (TOKEN, other) else 403)
        cookie = viewer.cookies[COOKIE]
        for sent, status in ((cookie, 200), (cookie[:-1] + ("1" if cookie.endswith("0") else "0"), 401)):
            answer = await viewer.get("/runs/first", headers={"cookie": f"{COOKIE}={sent}"})
            assert answer.status_code == status


async def test_after_ten_wrong_logins_within_a_minute_even_the_right_token_waits(folder: Path, clock: Clock) -> None:
    transport = httpx.ASGITransport(build_app(FolderRuns(folder), ViewAccess(AccessTokens(TOKEN), clock=clock)))
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as viewer:
        statuses = []
        for number in range(TRIES):
            clock.now += 1
            statuses.append((await viewer.post("/login", data={"token": f"wrong {number}"})).status_code)
        assert statuses == [403] * TRIES
        slowed = await viewer.post("/login", data={"token": TOKEN})
        assert (slowed.status_code, slowed.headers["retry-after"]) == (429, str(int(TRIES_S) - TRIES + 1))
        assert "set-cookie" not in slowed.headers
        clock.now += int(slowed.headers["retry-after"])
        assert (await viewer.post("/login", data={"token": TOKEN})).status_code == 303


@pytest.mark.parametrize(("origin", "secure"), [(ORIGIN, False), (ORIGIN.replace("http:", "https:"), True)])
async def test_over_tls_the_cookie_is_sent_over_tls_alone(client: Client, origin: str, secure: bool) -> None:
    async with client(TOKEN) as viewer:
        done = await viewer.post(f"{origin}/login", data={"token": TOKEN})
    assert ("; Secure" in done.headers["set-cookie"]) == secure


async def test_after_a_login_comes_the_page_that_was_asked_for_whatever_its_name(client: Client) -> None:
    async with client(TOKEN) as viewer:
        asked = "/runs/%E6%BC%A2%3Fa%3Db%23c?sort=-score&sample=%E6%BC%A2"
        form = await viewer.get(asked, headers={"accept": "text/html"}, follow_redirects=True)
        path = unescape(form.text.partition('name="next" value="')[2].partition('"')[0])
        done = await viewer.post("/login", data={"token": TOKEN, "next": path})
    assert done.headers["location"] == asked


async def test_a_login_that_another_site_sends_is_refused(client: Client) -> None:
    async with client(TOKEN) as viewer:
        answer = await viewer.post("/login", data={"token": TOKEN}, headers={"sec-fetch-site": "cross-site"})
    assert (answer.status_code, "set-cookie" in answer.headers) == (400, False)


@pytest.mark.parametrize(
    "path", ["https://evil.example/", "//evil.example", "/\\evil.example", "evil", "/a\nb", "/\t/e"]
)
def test_a_login_leads_to_no_other_site(path: str) -> None:
    assert own_path(path) == "/"


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({"host": "evil.example"}, "/", 403),
        ({"origin": "https://evil.example"}, "/", 403),
        ({"sec-fetch-site": "cross-site"}, "/", 403),
        ({"sec-fetch-site": "same-site"}, "/api/v1/runs", 403),
        ({**NAVIGATES, "sec-fetch-dest": "iframe"}, "/", 403),
        ({**NAVIGATES, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, "/", 403),
        ({**NAVIGATES, "host": "evil.example"}, "/", 403),
        (NAVIGATES, "/api/v1/runs", 403),
        (NAVIGATES, "/runs/first", 200),
        ({"sec-fetch-site": "none"}, "/runs/first", 200),
        ({"sec-fetch-site": "same-origin"}, "/api/v1/runs", 200),
        ({"host": "localhost:7400"}, "/", 200),
    ],
)
async def test_without_a_token_only_links_lead_here_from_other_sites(
    client: Client, headers: dict[str, str], path: str, status: int
) -> None:
    async with client() as viewer:
        answer: httpx.Response = await viewer.get(path, headers=headers)
    assert answer.status_code == status
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_form_of_another_site_is_refused_although_it_navigates(client: Client) -> None:
    async with client() as viewer:
        assert (await viewer.post("/runs/first", headers=NAVIGATES)).status_code == 403
