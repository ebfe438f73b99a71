"""What a stretch of words does: it asks, commands, wishes, states something, or merely names it.

Invariant: the answer depends on the words of the stretch alone and costs time linear in them. A clause *asks* when
somebody could answer it: a question, a command or a wish. It *leans* when it cannot be understood without the clause
before: it points back ("and tell him"), hangs on ("and when it arrives") or says nothing itself ("and why is that").

English and Spanish share the lists, so that nobody has to guess the language of five words; what would clash is left
out. Words are folded, with the punctuation around them gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final


class Mood(StrEnum):
    QUESTION = "question"
    COMMAND = "command"
    WISH = "wish"
    STATEMENT = "statement"
    FRAGMENT = "fragment"

    @property
    def asks(self) -> bool:
        return self in _ASKING


_ASKING: Final = frozenset({Mood.QUESTION, Mood.COMMAND, Mood.WISH})


def listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLEASE: Final = listed("please pls plz kindly porfa")
# What may come before the clause proper.
LEADS: Final = PLEASE | listed(
    """just now ok okay hey hi hello yo well um uh oh and also then plus maybe perhaps actually quickly first firstly
    second secondly third next finally lastly again siri alexa computer
    por favor ahora oye hola bueno pues y también tambien además ademas luego después despues primero"""
)

QUESTION_WORDS: Final = listed(
    """what which who whose whom when where why how
    qué cuál cuáles quién quiénes cuándo dónde adónde cómo cuánto cuánta cuántos cuántas"""
)
# With their verb inside, as "what's" is with the apostrophe.
QUESTION_VERBS: Final = listed("whats whos wheres hows whens whys")
# Unaccented they mostly begin other clauses: a verb has to follow.
BARE_QUESTION_WORDS: Final = listed("que cual cuales quien quienes cuando donde como cuanto cuanta cuantos cuantas")
# "Which bus", "how far", "what time": a noun or adjective may follow instead of the verb.
DETERMINING: Final = listed("what which whose how qué cuál cuáles cuánto cuánta cuántos cuántas")

AUXILIARIES: Final = listed(
    """is are was were am do does did can could will would should shall may might must has have had
    isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't shouldn't hasn't haven't hadn't
    isnt arent wasnt werent dont doesnt didnt cant couldnt wont wouldnt shouldnt hasnt havent hadnt
    está están estan es son hay fue fueron estuvo puedes puede puedo podrías podrias podría podria debo debería deberia
    tengo tiene tienes hace hará hara va van sigue siguen queda quedan esta"""
)
# As often the second verb of a statement ("… and can't log in"): a subject has to follow.
LOOSE_AUXILIARIES: Final = listed(
    """do may might must am don't dont can't cant won't wont couldn't couldnt didn't didnt doesn't doesnt
    wasn't wasnt isn't isnt weren't werent aren't arent shouldn't shouldnt wouldn't wouldnt
    esta puedo puede es son hay va van fue"""
)
# "Have my tires changed", "has a dog": a pronoun has to follow, or a participle further on.
POSSESSIVE_AUXILIARIES: Final = listed("have has had haven't havent hasn't hasnt hadn't hadnt tengo tiene tienes")
MODALS: Final = listed("can could will would should shall")

PRONOUNS: Final = listed(
    "i you he she it we they this that these those there yo tú tu él ella nosotros ellos ellas usted"
)
DETERMINERS: Final = listed(
    """the a an my your our his her their its any some all every each no someone anyone anybody everyone everybody
    anything everything something nothing el la los las un una unos unas mi mis tus su sus nuestro nuestra nuestros
    nuestras algo algún algun alguna alguien todo toda todos todas"""
)
# What stands right behind an auxiliary as the subject of a question.
SUBJECTS: Final = PRONOUNS | DETERMINERS
# What does instead when the auxiliary goes on with somebody else's sentence: "my card is lost and is not working".
CONTINUATIONS: Final = listed(
    """not never now still already always just also only being been be able unable going supposed very so too really
    currently like love prefer need want lost gone stolen broken no nunca ya aún aun todavía todavia"""
)

# Verbs that begin a command: everyday requests to a machine or a clerk.
COMMANDS: Final = listed(
    """activate add adjust alert allow analyze analyse announce answer append apply approve arrange ask assign attach
    block book boost bring broadcast browse build buy calculate call cancel change charge check choose clear close
    compile compose compute confirm connect convert copy correct count create cut deactivate decide decline decrease
    define delete deliver deposit describe design dial dim disable disconnect discover display double download draft
    draw drop edit email enable end enlarge enter erase estimate evaluate exchange execute explain explore export extend
    fetch figure file fill find finish fix flip forget forward freeze generate get give go google grab guess hand hear
    help hide identify import include increase inform initiate insert install invite issue join keep launch leave let
    let's lets list listen load locate lock log look lower mail make map mark measure mention message move mute name
    navigate note notify open order organize outline pause pay phone pick pin place plan play plot post predict prepare
    preview print proceed provide pull purchase put quit quote raise rank rate read reboot recall recite recommend
    record redo reduce refill refresh reject remember remind remove rename renew reopen repeat replace reply report
    request reschedule research resend reserve reset restart resume retrieve return review rewrite ring roll run save
    say scan schedule search select sell send set share shift show shuffle shut sing skip solve sort speak spell start
    stop store stream submit subscribe subtract suggest summarize summarise switch take talk teach tell test text throw
    toggle track transfer translate try tune turn type unblock unlock unmute unpause update upgrade upload use verify
    view visit wait wake warn watch wire withdraw write
    abre activa actualiza agrega ajusta anota añade apaga apunta avisa avísame bloquea borra busca búscame calcula
    cambia cancela cierra comparte comprueba consulta crea cuéntame dame desactiva detén dibuja dime elimina enciende
    encuentra enséñame envía envíame escribe explica explícame haz hazme léeme llama llévame manda mándame muestra
    muéstrame pide pídeme pon ponme prepara quita recomienda recomiéndame recuérdame repite reproduce resérvame revisa
    sugiere traduce verifica busca avisame buscame cuentame ensename enviame explicame leeme muestrame recuerdame"""
)
# Names of things as well, and fond of standing before others: "gas and phone bills", "rock and roll history". Such a
# command needs more than a noun behind it.
NOUNS_TOO: Final = listed(
    """answer block boost change charge copy cut design dial draft email end exchange file fill forward hand issue load
    log mail map mark measure message name note order phone pin place plan plot post print pull purchase quote record
    report request research return review ring roll run scan schedule share shift shuffle start stop store stream switch
    talk test text track transfer type update upgrade view visit wire watch llama"""
)
# What may follow a verb but hardly a noun that qualifies another.
AFTER_VERBS: Final = (
    DETERMINERS
    | PRONOUNS
    | listed(
        """me us him them to for up out off on in at with from over down back into about if whether what when where how
        more another both one two three four five six seven eight nine ten"""
    )
)
# "Go to the shop and buy milk": the first only leads up to the second.
SERIAL: Final = listed("go come try")

WISHERS: Final = listed("i we i'd we'd i'll we'll i'm im id we're")
WISHES: Final = listed(
    """need want wanna wish gotta require like love prefer appreciate looking wondering wonder
    quiero necesito quisiera queremos necesitamos gustaría gustaria"""
)
# "I like cats" states; "I'd like a cat" wishes.
CONDITIONAL_WISHES: Final = listed("like love prefer appreciate")
BARE_WISHES: Final = listed(
    "need want wanna wish looking quiero necesito quisiera queremos necesitamos gustaría gustaria"
)
# "This song needs to be on my list", "my parents need a table".
WISHED: Final = listed("a an the to some")
# What may stand between "I" and the wish.
WISH_FILLERS: Final = listed("really do also just am was still will d m are be have been")

PREPOSITIONS: Final = listed(
    "in on at for from to onto into by with within without during after before under over near around via using through"
)
# Verbs in the past tell a story. Most of the others end in "-ed".
PAST: Final = listed(
    """got went took ate lost stole found saw made sent paid bought came gave said told left kept broke forgot fell felt
    thought knew spent ran won wrote began became chose drove met held stopped seems says keeps"""
)
# A clause that begins so hangs on another.
SUBORDINATORS: Final = listed(
    """if because since so but or nor unless until while whereas although though that whom as than before after once
    whether otherwise instead si porque pero sino aunque mientras"""
)

# Words that point back at what was said. "It" and "one" do so in some places only.
POINTERS: Final = listed("him her them they he she itself themselves else otherwise instead accordingly eso ello ellos")
# "The next one", "get one"; but "rate it one", "table for one".
ONE_BEFORE: Final = listed("the this that which next new another other get buy order make need want find send have")

ADVERBIAL: Final = listed("when where why who how")
# "How long does it take", "when will it rain".
IMPERSONAL: Final = listed("rain raining snow snowing take cost feel mean hot cold warm sunny windy dark light")

# Words that say nothing by themselves. A clause of nothing else asks about what was said before.
HOLLOW: Final = (
    LEADS
    | QUESTION_WORDS
    | QUESTION_VERBS
    | BARE_QUESTION_WORDS
    | AUXILIARIES
    | SUBJECTS
    | SUBORDINATORS
    | CONTINUATIONS
    | WISHERS
    | WISHES
    | POINTERS
    | listed(
        """s re ll d ve m t me us one ones same another other others to of in on at for from by with about up out off
        over into onto back away down go ahead get got know see tell let let's lets done doing happen happened happening
        happens help check show try look say said think possible right wrong sure allowed come thanks thank much many
        long often soon more less here today case reason way thing problem fix fixed explain asap yes yeah nope wait
        there's that's it's i've you've de del al en con por para se te le nos lo"""
    )
)


def judge(words: Sequence[str]) -> Mood:
    """The mood of a clause."""
    at = _start(words)
    return _opening(words, at) or _inside(words, at)


def leans(words: Sequence[str]) -> bool:
    """Whether a clause cannot be understood without the one before it."""
    at = _start(words)
    if at == len(words) or words[at] in SUBORDINATORS or not has_content(words):
        return True
    # "I stay at home and read".
    is_bare_verb = len(words) == at + 1 and words[at] in COMMANDS
    return is_bare_verb or _points_back(words, at)


def has_content(words: Sequence[str]) -> bool:
    return any(word not in HOLLOW and word.partition("'")[0] not in HOLLOW for word in words)


def _start(words: Sequence[str]) -> int:
    at = 0
    while at < len(words) and words[at] in LEADS:
        at += 1
    return at


def _opening(words: Sequence[str], at: int) -> Mood | None:
    """The mood that a clause's first words give it."""
    if at == len(words):
        return Mood.FRAGMENT
    first = words[at]
    second = words[at + 1] if at + 1 < len(words) else ""
    if first in QUESTION_VERBS or ("'" in first and first.partition("'")[0] in QUESTION_WORDS):
        return Mood.QUESTION
    if first in QUESTION_WORDS:
        return Mood.QUESTION if _is_direct(first, second) else None
    if first in BARE_QUESTION_WORDS and second in AUXILIARIES:
        return Mood.QUESTION
    if first in AUXILIARIES and _is_inverted(first, second, words):
        return Mood.QUESTION
    if first in COMMANDS and (first not in NOUNS_TOO or second in AFTER_VERBS) and (first, second) != ("close", "to"):
        return Mood.COMMAND
    if second in ("me", "us") and first not in HOLLOW and len(words) > at + 2:
        return Mood.COMMAND
    if second and (first in BARE_WISHES or (first == "am" and second in WISHES) or (first, second) == ("like", "to")):
        return Mood.WISH
    if first in PREPOSITIONS and _commands_behind(words, at):
        return Mood.COMMAND
    return None


def _commands_behind(words: Sequence[str], at: int) -> bool:
    """Whether a command follows the phrase in front: "at seven turn on the lights"."""
    return any(
        words[i] in COMMANDS
        and words[i] not in NOUNS_TOO
        and words[i + 1] in AFTER_VERBS
        and words[i - 1] not in HOLLOW
        for i in range(at + 2, len(words) - 1)
    )


def _is_direct(first: str, second: str) -> bool:
    """Whether a question word opens a question of its own, not one that hangs on "tell me" or "I wonder"."""
    if second in AUXILIARIES or second in ("s", "about", "come", "to"):
        return True
    return bool(second) and second not in SUBJECTS and (first in DETERMINING or first == "who")


def _is_inverted(first: str, second: str, words: Sequence[str]) -> bool:
    if second in PRONOUNS:
        return True
    if first in POSSESSIVE_AUXILIARIES:
        participle = "been" in words or (first[:3] == "has" and any(word.endswith("ed") for word in words))
        return participle and second in DETERMINERS
    if second in DETERMINERS:
        return True
    if not second or first in LOOSE_AUXILIARIES or second in CONTINUATIONS or second.endswith(("ed", "ing")):
        return False
    if first == "will":
        # "… and Will Smith movies" has no verb.
        return second not in COMMANDS and any(
            word in COMMANDS or word in ("be", "have", "rain", "snow") for word in words
        )
    return first not in MODALS or second not in COMMANDS or second in NOUNS_TOO


def _inside(words: Sequence[str], at: int) -> Mood:
    """The mood of a clause that asks further in: "on Monday I need a table", "to the list please add milk"."""
    stated = False
    for i in range(at, len(words)):
        word = words[i]
        after = words[i + 1] if i + 1 < len(words) else ""
        if word in PLEASE and after in COMMANDS:
            return Mood.COMMAND
        if after == "you" and word in ("can", "could", "would", "will"):
            return Mood.QUESTION
        if word in WISHERS and _is_wish(words, i) and not (i > at and words[i - 1] in HOLLOW):
            return Mood.WISH
        if i > at and (word == "deserves" or (after in WISHED and _needs(words, i))):
            return Mood.WISH
        stated = (
            stated
            or word.partition("'")[0] in PRONOUNS
            or (word in AUXILIARIES and word != "may")
            or word in PAST
            or (i > at and word.endswith("ed"))
        )
    return Mood.STATEMENT if stated else Mood.FRAGMENT


def _is_wish(words: Sequence[str], at: int) -> bool:
    conditional = words[at].endswith("d")
    for word in words[at + 1 : at + 4]:
        if word in WISHES:
            return conditional or word not in CONDITIONAL_WISHES
        if word in ("would", "should", "d"):
            conditional = True
        elif word not in WISH_FILLERS:
            return False
    return False


def _needs(words: Sequence[str], at: int) -> bool:
    return words[at] == "needs" or (words[at] == "need" and words[at - 1] not in HOLLOW)


def _points_back(words: Sequence[str], at: int) -> bool:
    for i in range(at, len(words)):
        word = words[i]
        before = words[i - 1] if i > at else ""
        after = words[i + 1] if i + 1 < len(words) else ""
        if word in POINTERS:
            return True
        if (word == "one" and before in ONE_BEFORE) or (word == "that" and before in AUXILIARIES):
            return True
        if word == "it" and _refers(words, at, before, after):
            return True
    return False


def _refers(words: Sequence[str], at: int, before: str, after: str) -> bool:
    """Whether "it" is a thing: "lock it", "when was it written"; not "is it raining", "how cold will it be"."""
    if before in AUXILIARIES:
        return words[at] in ADVERBIAL and words[at + 1] == before and after not in HOLLOW and after not in IMPERSONAL
    return before not in SUBORDINATORS and after not in AUXILIARIES


def begins_with(words: Sequence[str], openers: frozenset[str]) -> bool:
    at = _start(words)
    return at < len(words) and words[at] in openers
