"""The student layer: whom it serves, what it says, and that a new one is a new profile, swapped whole."""

import asyncio
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

import turnout
from small_student import LABELS, Words, keep, questions, teach, teach_staged
from timing import quickest
from turnout import ConfigError, LiveRouter, Query, load, load_profile
from turnout.config.document import Document
from turnout.config.resolve import build
from turnout.core.layer import MissingLayer
from turnout.core.registry import Supplies
from turnout.core.verdict import Verdict
from turnout.layers.artefact import WEIGHTS
from turnout.layers.student import RemoteStudent, ShortTexts, Student, StudentConfig, student
from turnout.layers.student_model import read_student
from turnout.learn.fit import FitSettings, StudentFit, fit
from turnout.learn.registry import put, rollback, set_champion
from turnout.testing import check_layer, make_reading
from turnout.text.match import Lexicon

FIRST = Path(__file__).parent / "data"
"""Students of the first version."""
EMBEDDER = Words()
PLAIN, MIXED = teach(), teach(EMBEDDER)
TEXTS = ("where is my parcel", "refund my ticket", "write code that sorts a lamp", "¿dónde está mi paquete?", "zebras")

PROFILE = """\
name = "taught"
routes = ["first", "second", "third"]
fallback = {{ route = "third" }}

[[layers]]
id = "student"
kind = "student.v1"
accept = {{ confidence = 0.6 }}
{more}

[policy.first]
[policy.second]
[policy.third]
"""


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    keep(tmp_path / "kept", PLAIN)
    return tmp_path / "kept"


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile whose shelf is empty."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return write(tmp_path)


def write(folder: Path, more: str = "") -> Path:
    (folder / "taught.toml").write_text(PROFILE.format(more=more))
    return folder / "taught.toml"


def supplies(**more: Any) -> Supplies:
    return Supplies(LABELS, Lexicon(), profile="taught", **more)


def test_it_keeps_what_a_layer_promises(kept: Path) -> None:
    check_layer("student.v1", {"model": str(kept)}, routes=LABELS, texts=TEXTS)
    check_layer(Student(MIXED.model(), EMBEDDER), routes=LABELS, texts=TEXTS)


def test_a_verdict() -> None:
    layer = Student(PLAIN.model())
    verdict = layer(make_reading("Where is my  PARCEL?"))
    assert isinstance(verdict, Verdict)
    assert verdict.routes == ("first",)
    assert verdict.calibrated
    assert verdict.confidence > 0.8
    assert set(verdict.scores) == set(LABELS)
    assert sum(verdict.scores.values()) == pytest.approx(1.0, abs=1e-5)
    assert verdict.margin == pytest.approx(max(verdict.scores.values()) - sorted(verdict.scores.values())[-2])
    assert all(type(score) is float for score in (*verdict.scores.values(), verdict.confidence, verdict.margin))
    assert layer(make_reading("  ")) is None


def test_it_knows_what_it_does_not_know() -> None:
    for fitted, embedder in ((PLAIN, None), (MIXED, EMBEDDER)):
        layer = Student(fitted.model(), embedder)
        known, strange = (layer(make_reading(text)) for text in ("track the book for me", "zebras eat opera soup"))
        assert known is not None
        assert strange is not None
        assert known.confidence > 0.8 > 0.5 >= strange.confidence


def test_it_says_why_in_words() -> None:
    layer = Student(PLAIN.model())
    verdict = layer(make_reading("refund my ticket"))
    told = {reason.code: reason.text for reason in (*layer.explain(verdict), *layer.elaborate(verdict))}  # type: ignore[arg-type]
    assert told["student.label"].startswith("the student says second (0.9")
    assert told["student.for"].startswith("for second: “refund” ")
    assert "100% of its words and pairs of words were learnt" in told["student.known"]
    mixed = Student(MIXED.model(), EMBEDDER)
    verdict = mixed(make_reading("refund my ticket"))
    told = {reason.code: reason.text for reason in (*mixed.explain(verdict), *mixed.elaborate(verdict))}  # type: ignore[arg-type]
    assert "cosine 0." in told["student.known"]
    assert told["student.meaning"].startswith("the meaning of the whole speaks for ")


def test_what_is_unlike_anything_learnt_is_a_reason() -> None:
    """Where a question is like the others, only those who look closer are told so."""
    layer = Student(PLAIN.model())
    for text, told, closer in (
        ("refund my ticket", ["student.label"], ["student.for", "student.known"]),
        ("zebras eat opera soup", ["student.label", "student.known"], ["student.for"]),
    ):
        verdict = layer(make_reading(text))
        assert verdict is not None
        assert [reason.code for reason in layer.explain(verdict)] == told
        assert [reason.code for reason in layer.elaborate(verdict) if reason.code != "student.against"] == closer
    assert layer.explain(verdict)[1].text.startswith("unlike what it knows (-")


def test_of_a_short_text_more_is_asked() -> None:
    """A probability that will do for a long text may be one word's for a short one."""
    text = "refund my ticket"
    sure = Student(PLAIN.model())(make_reading(text))
    assert sure is not None
    above = (sure.scores["second"] + 1) / 2
    layer = Student(PLAIN.model(), config=StudentConfig(short=ShortTexts(len(text), {"second": above})))
    verdict = layer(make_reading(text))
    assert verdict is not None
    assert verdict.routes != ("second",)
    assert f"is said from {above:.2f} on" in layer.explain(verdict)[1].text
    shorter = Student(PLAIN.model(), config=StudentConfig(short=ShortTexts(len(text) - 1, {"second": above})))
    assert shorter(make_reading(text)) == sure


def test_history_and_length_are_nothing_to_it() -> None:
    layer = Student(PLAIN.model())
    begin, end = "where is my parcel " * 100, " for me" * 100
    long = begin + end
    assert layer(make_reading(Query(long, intents=("a", "b")))) == layer(make_reading(long))
    verdict = layer(make_reading(begin + end))
    for middle in ("refund " * 50_000, "zebras\n" * 9, "返" * 200_000):
        assert layer(make_reading(begin + middle + end)) == verdict, "its beginning and its end are read"
    assert layer(make_reading(begin + "refund my ticket " * 50)) != verdict
    short = Student(PLAIN.model(), config=StudentConfig(characters=18))
    assert short(make_reading("where is my parcel refund refund")) == short(make_reading("where is my parcel"))


def test_time_does_not_grow_with_the_text() -> None:
    layer = Student(PLAIN.model())
    texts = [make_reading("where is my parcel " * n) for n in (50, 20_000)]

    short, long = (quickest(partial(layer, text), tries=30) for text in texts)
    assert long < 3 * short


# --- in two stages


class AskedEmbedder(Words):
    """Says what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], /) -> Any:
        self.texts += texts
        return super().embed(texts)


# By its words alone the first kind is clear, the second is half of one and half of another, or nothing it knows.
CLEAR = ("where is my parcel", "refund my ticket", "write code that sorts a lamp")
UNCLEAR = ("the letter", "bug money arrived", "zebras eat opera soup", "¿dónde está mi paquete?")


def staged(embedder: Words, **changed: Any) -> Student:
    fitted = teach_staged()
    assert fitted.draft.alone is not None
    draft = replace(fitted.draft, alone=replace(fitted.draft.alone, **changed))
    return Student(fitted._replace(draft=draft).model(), embedder)


@pytest.mark.parametrize(("text", "asked"), [*((text, []) for text in CLEAR), *((text, [text]) for text in UNCLEAR)])
def test_a_question_is_embedded_only_where_its_words_leave_it_unsure(text: str, asked: list[str]) -> None:
    embedder = AskedEmbedder()
    layer = staged(embedder)
    verdict = layer(make_reading(text))
    assert embedder.texts == asked
    assert verdict == layer(make_reading(text))
    assert verdict is not None
    judged = layer.trained.judge(text, EMBEDDER.embed([text])[0])
    assert (verdict.routes, verdict.confidence) == ((judged.label,), judged.confidence)
    assert judged.alone is not bool(asked)


def test_an_unsure_one_is_judged_as_if_there_were_one_stage() -> None:
    one, two = staged(EMBEDDER, sure=1.0), staged(EMBEDDER)
    for text in UNCLEAR:
        verdict, other = one(make_reading(text)), two(make_reading(text))
        assert verdict == other
    for text in CLEAR:
        verdict, other = one(make_reading(text)), two(make_reading(text))
        assert verdict is not None
        assert other is not None
        assert verdict.routes == other.routes
        assert verdict != other


@pytest.mark.parametrize(("more", "asked"), [(0.0, 0), (1e-9, 1)], ids=["just", "not quite"])
def test_from_where_on_it_is_sure(more: float, asked: int) -> None:
    verdict = staged(EMBEDDER)(make_reading(CLEAR[0]))
    assert verdict is not None
    embedder = AskedEmbedder()
    assert staged(embedder, sure=verdict.confidence + more)(make_reading(CLEAR[0])) is not None
    assert len(embedder.texts) == asked


def test_it_says_which_stage_decided() -> None:
    layer = staged(EMBEDDER)
    for text, stage, codes in (
        (CLEAR[1], "sure by its words alone: its meaning was not looked at", {"student.label"}),
        (UNCLEAR[0], "not sure enough by its words alone: its meaning was looked at", {"student.meaning"}),
    ):
        verdict = layer(make_reading(text))
        told = {reason.code: reason.text for reason in (*layer.explain(verdict), *layer.elaborate(verdict))}  # type: ignore[arg-type]
        assert told["student.stage"] == stage
        assert told.keys() >= codes
        assert ("student.meaning" in told) is ("cosine" in told["student.known"]) is (text in UNCLEAR)
    single = Student(read_student(FIRST / "first-vectors"), EMBEDDER)
    told = {reason.code: reason.text for reason in single.explain(single(make_reading(CLEAR[1])))}  # type: ignore[arg-type]
    assert "student.stage" not in told


def test_what_the_words_said_adds_up() -> None:
    """Words, and what is usual, account for the whole distance between two labels, in the measure of that stage."""
    trained = teach_staged().model()
    judged = trained.judge_alone(trained.hear(CLEAR[0]))
    assert judged is not None
    between = judged.best, judged.second
    told = sum(push for _, push in trained.pushes(CLEAR[0], *between, alone=True))
    told += trained.lean(CLEAR[0], *between, alone=True)
    chances = judged.probabilities
    assert told == pytest.approx(float(np.log(chances[judged.best] / chances[judged.second])), rel=1e-3)


def test_two_stages_keep_what_a_layer_promises(profile: Path, tmp_path: Path) -> None:
    check_layer(staged(EMBEDDER), routes=LABELS, texts=(*CLEAR, *UNCLEAR))
    keep(tmp_path / "kept", teach_staged())
    write(tmp_path, 'model = "kept"')
    router = load(profile, config="", embedder=EMBEDDER)
    for text in (*CLEAR, *UNCLEAR):
        decision = router.route_sync(text)
        assert router.replay(decision).steps[0].verdict == decision.steps[0].verdict


# --- where there is none


class Lacking(NamedTuple):
    id: str
    folder: str
    embedder: Words | None
    config: dict[str, Any]
    said: str


# A student of the first version cannot do without the embedder it was trained with.
LACKING = [
    Lacking("no embedder", "first-vectors", None, {}, "words-16, and none is here (turnout-build-minilm)"),
    Lacking("another embedder", "first-vectors", Words("other-16"), {}, "words-16, here is other-16"),
    Lacking("another width", "first-staged", Words(width=8), {}, "their vectors do not compare"),
    Lacking("another digest", "first-words", None, {"artefact": "0" * 16}, f"not {'0' * 16}"),
]


@pytest.mark.parametrize("case", LACKING, ids=lambda case: case.id)
def test_absent(case: Lacking) -> None:
    config = StudentConfig(model=str(FIRST / case.folder), **case.config)
    found = student(config, supplies(embedder=case.embedder))
    assert isinstance(found, MissingLayer)
    assert case.said in found.absent
    assert found(make_reading("where")) is None


def test_absent_without_a_champion(profile: Path) -> None:
    loaded = load_profile(profile, config="")
    assert loaded.remarks == ("layer 'student' passes: no trained student (turnout train -p taught)",)
    decision = load(profile, config="").route_sync("where is my parcel")
    assert (decision.route, decision.outcome[0]) == ("third", "F")


@pytest.mark.parametrize("embedder", [None, Words("other-16"), Words(width=8)], ids=["none", "another", "narrower"])
def test_without_its_embedder_its_words_answer(embedder: Words | None, tmp_path: Path) -> None:
    """By curves that were fitted for words alone, also where, beside an embedder, they would never be enough."""
    keep(tmp_path / "kept", MIXED)
    layer = student(StudentConfig(model=str(tmp_path / "kept")), supplies(embedder=embedder))
    assert type(layer) is Student
    check_layer(layer, routes=LABELS, texts=TEXTS)
    right = [layer(make_reading(text)) for text, _ in questions()]
    assert all(
        verdict is not None and verdict.routes == (label,)
        for verdict, (_, label) in zip(right, questions(), strict=True)
    )
    assert min(verdict.confidence for verdict in right if verdict) > 0.6
    strange = layer(make_reading("zebras eat opera soup"))
    assert strange is not None
    assert strange.confidence < 0.5
    told = {reason.code: reason.text for reason in (*layer.explain(strange), *layer.elaborate(strange))}
    assert not {"student.meaning", "student.stage"} & told.keys()
    assert "of its words and pairs of words were learnt" in told["student.known"]
    between = strange.evidence[1:3]
    alone = sum(push for _, push in layer.trained.pushes("zebras eat opera soup", *between))
    alone += layer.trained.lean("zebras eat opera soup", *between)
    chances = [strange.scores[LABELS[at]] for at in between]
    assert alone == pytest.approx(float(np.log(chances[0] / chances[1])), rel=1e-3)


MANY = tuple(f"route-{at}" for at in range(9))


def teach_many(embedder: Words | None = None) -> StudentFit:
    rows = [(f"{asked} {name}", route) for name, route in zip(NAMES, MANY, strict=True) for asked in ASKED]
    return fit(rows, embedder=embedder, settings=FitSettings(folds=2))


NAMES = ("parcel", "ticket", "zebra", "opera", "guitar", "soup", "letter", "invoice", "museum")
ASKED = ("where is the", "tell me about the", "how much is a", "show it to me, that", "why is there no", "i lost my")


class Numberless(NamedTuple):
    id: str
    keep: Callable[[Path], object]
    absent: bool


# Up to eight labels plain Python adds; nine labels, and hashed n-grams, are NumPy's.
NUMBERLESS = [
    Numberless("three labels", lambda folder: keep(folder, PLAIN), absent=False),
    Numberless("vectors, no embedder", lambda folder: keep(folder, MIXED), absent=False),
    Numberless("nine labels", lambda folder: keep(folder, teach_many()), absent=True),
    Numberless("the first version", lambda folder: shutil.copytree(FIRST / "first-words", folder), absent=True),
]


@pytest.mark.parametrize("case", NUMBERLESS, ids=lambda case: case.id)
def test_without_numpy(case: Numberless, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case.keep(tmp_path / "kept")
    monkeypatch.setattr("turnout.layers.student.find_spec", lambda name: None)
    config = StudentConfig(model=str(tmp_path / "kept"))
    found = student(config, Supplies((*LABELS, *MANY), Lexicon(), profile="taught"))
    assert isinstance(found, MissingLayer) is case.absent
    if isinstance(found, MissingLayer):
        assert "pip install 'turnout[student]'" in found.absent


def test_importing_the_layer_imports_no_numpy() -> None:
    """In a process of its own: a module imported twice here would leave two of each kind behind."""
    code = "import sys; sys.modules['numpy'] = None; import turnout.layers.student"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- which one serves


def test_the_champion_serves(profile: Path, kept: Path) -> None:
    digest = put(kept, "taught", "student").name
    assert "student" not in load(profile, config="").route_sync("where is my parcel").by
    bare = load_profile(profile, config="").hash
    set_champion("taught", "student", digest)
    router = load(profile, config="")
    decision = router.route_sync("where is my parcel")
    assert (decision.route, decision.by, decision.outcome) == ("first", "student", "E-")
    assert router.profile.hash != bare
    assert router.profile.resolved["layers"][0]["artefact"] == digest
    assert router.replay(decision).json() != ""
    assert router.replay(decision).steps[0].verdict == decision.steps[0].verdict


def test_another_student_is_another_profile(profile: Path, tmp_path: Path) -> None:
    hashes = set()
    for at, fitted in enumerate((PLAIN, teach(labels=("second", "first", "third")))):
        keep(tmp_path / str(at), fitted)
        set_champion("taught", "student", put(tmp_path / str(at), "taught", "student").name)
        hashes.add(load_profile(profile, config="").hash)
    assert len(hashes) == 2
    old = load(profile, config="").route_sync("where is my parcel")
    rollback("taught", "student")
    router = load(profile, config="")
    with pytest.raises(turnout.ReplayMismatch):
        router.replay(old)


def test_a_resolved_profile_finds_its_own_student_again(profile: Path, tmp_path: Path) -> None:
    """A decision is made again by the student that made it, not by the one that serves today."""
    keep(tmp_path / "one", PLAIN)
    keep(tmp_path / "two", teach(labels=("second", "first", "third")))
    set_champion("taught", "student", put(tmp_path / "one", "taught", "student").name)
    old = load_profile(profile, config="")
    set_champion("taught", "student", put(tmp_path / "two", "taught", "student").name)
    assert load(profile, config="").route_sync("where is my parcel").route == "second"
    again = build(Document(dict(old.resolved), {}, "the log"))
    assert again.hash == old.hash
    assert turnout.Router(again).route_sync("where is my parcel").route == "first"


def test_an_heir_is_served_until_it_has_its_own(profile: Path, kept: Path, tmp_path: Path) -> None:
    heir = tmp_path / "heir.toml"
    heir.write_text('extends = "taught.toml"\nname = "heir"\n')
    set_champion("taught", "student", put(kept, "taught", "student").name)
    # The base of an heir beside it is a file; a shipped one is a name, and has a shelf.
    assert load_profile(heir, config="").layers[0].call is None
    set_champion("heir", "student", put(kept, "heir", "student").name)
    assert load_profile(heir, config="").layers[0].call is not None


def test_a_model_beside_the_profile(profile: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load(write(tmp_path, 'model = "kept"'), config="").route_sync("where is my parcel").route == "first"
    assert load(write(tmp_path, f'model = "{kept}"'), config="").route_sync("where is my parcel").route == "first"
    with pytest.raises(ConfigError, match=r"nowhere/manifest\.json: cannot be read"):
        load(write(tmp_path, 'model = "nowhere"'), config="")


def test_labels_that_are_no_routes_are_an_error_when_loading(profile: Path, tmp_path: Path) -> None:
    keep(tmp_path / "other", teach(labels=("first", "fourth", "third")))
    with pytest.raises(ConfigError, match=r"trained for other routes: 'fourth' is not of this profile \(first, second"):
        load(write(tmp_path, 'model = "other"'), config="")


def test_a_damaged_champion_is_an_error_when_loading(profile: Path, kept: Path) -> None:
    folder = put(kept, "taught", "student")
    set_champion("taught", "student", folder.name)
    (folder / WEIGHTS).write_bytes(b"")
    with pytest.raises(ConfigError, match="not the file its manifest was written for"):
        load(profile, config="")
    shutil.rmtree(folder)
    with pytest.raises(ConfigError, match="not on the shelf"):
        load(profile, config="")


def test_an_embedder_is_handed_in(profile: Path, tmp_path: Path) -> None:
    keep(tmp_path / "kept", MIXED)
    write(tmp_path, 'model = "kept"')
    assert load_profile(profile, config="").layers[0].call.embedder is None  # type: ignore[union-attr]
    given = load(profile, config="", embedder=EMBEDDER)
    assert given.profile.layers[0].call.embedder is EMBEDDER  # type: ignore[union-attr]
    assert given.route_sync("where is my parcel").by == "student"
    assert LiveRouter(profile, config="", embedder=EMBEDDER).router.route_sync("where is my parcel").by == "student"


def test_a_live_router_follows_the_champion(profile: Path, tmp_path: Path) -> None:
    live = LiveRouter(profile, config="")
    assert live.router.route_sync("where is my parcel").by == "fallback"
    keep(tmp_path / "one", PLAIN)
    keep(tmp_path / "two", teach(labels=("second", "first", "third")))
    for name, route in (("one", "first"), ("two", "second")):
        set_champion("taught", "student", put(tmp_path / name, "taught", "student").name)
        assert (done := live.poll()) is not None
        assert done.status == "swapped"
        assert live.router.route_sync("where is my parcel").route == route
    rollback("taught", "student")
    assert live.reload().status == "swapped"
    assert live.router.route_sync("where is my parcel").route == "first"
    assert live.reload().status == "same"
    champion = next((tmp_path / "share").rglob("champion"))
    champion.write_text("0123456789abcdef\n")
    assert live.reload().status == "kept"
    assert live.router.route_sync("where is my parcel").route == "first"


def test_a_swap_under_load_mixes_nothing(profile: Path, tmp_path: Path) -> None:
    """Every decision is one student's: its route is the one that the student of its profile gives."""
    keep(tmp_path / "one", PLAIN)
    keep(tmp_path / "two", teach(labels=("second", "first", "third")))
    digests = [put(tmp_path / name, "taught", "student").name for name in ("one", "two")]
    set_champion("taught", "student", digests[0])
    live = LiveRouter(profile, config="")
    seen: set[tuple[str, str]] = set()
    wrong: list[str] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            decision = live.router.route_sync("where is my parcel")
            seen.add((decision.profile.hash, decision.route))
            if decision.by != "student":
                wrong.append(decision.by)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for swap in range(6):
        set_champion("taught", "student", digests[1 - swap % 2])
        assert live.reload().status == "swapped"
        # On a busy machine all swaps may be over before a thread has its turn.
        until = time.monotonic() + 10
        while live.router.profile.hash not in {one for one, _ in seen.copy()} and time.monotonic() < until:
            time.sleep(0.001)
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert {route for _, route in seen} == {"first", "second"}
    assert len(seen) == 2


# --- vectors from a server


class Elsewhere(Words):
    async def fetch(self, texts: Sequence[str]) -> Any:
        await asyncio.sleep(0)
        return self.embed(texts)


def test_a_remote_embedder_is_awaited(profile: Path, tmp_path: Path) -> None:
    keep(tmp_path / "kept", MIXED)
    write(tmp_path, 'model = "kept"')
    router = load(profile, config="", embedder=Elsewhere())
    (place,) = router.profile.layers
    assert (place.cost, type(place.call)) == ("network", RemoteStudent)
    decision = asyncio.run(router.route("where is my parcel"))
    assert (decision.by, decision.route) == ("student", "first")
    fault = router.route_sync("where is my parcel").steps[0].fault
    assert fault is not None
    assert fault.kind == "skipped"
    assert router.replay(decision).routes == decision.routes
    check_layer(place.call, routes=LABELS, texts=TEXTS)


def test_a_remote_embedder_is_not_asked_where_words_are_enough() -> None:
    class Down(Words):
        async def fetch(self, texts: Sequence[str]) -> Any:
            raise ConnectionError("no route to host")

    layer = RemoteStudent(teach_staged().model(), Down())
    here = staged(EMBEDDER)
    for text in CLEAR:
        assert asyncio.run(layer(make_reading(text))) == here(make_reading(text))
    for text in UNCLEAR:
        with pytest.raises(ConnectionError):
            asyncio.run(layer(make_reading(text)))
    up = RemoteStudent(teach_staged().model(), Elsewhere())
    for text in UNCLEAR:
        assert asyncio.run(up(make_reading(text))) == here(make_reading(text))


def test_every_question_it_learnt_from_is_answered() -> None:
    layer = Student(PLAIN.model())
    verdicts = [(layer(make_reading(text)), label) for text, label in questions()]
    assert all(verdict is not None and verdict.routes == (label,) for verdict, label in verdicts)
