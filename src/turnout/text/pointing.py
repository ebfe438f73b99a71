"""The words by which a question points outside itself, in English and Spanish. Facts only: `reference` uses them.

Words are folded, and what a tokeniser splits is split: "n't" and "'s" are words, and so is a mark. A `Cue` is a pattern
for what single words do not tell. It reads the opening of a question with one space around every word and mark, so that
a space is a word boundary in every script.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Kind = Literal["pronoun", "deictic", "earlier", "ellipsis", "continuation", "comparative", "definite", "open"]


class Cue(NamedTuple):
    kind: Kind
    find: str
    unless: str = ""
    """Another pattern, which acquits."""
    bare: bool = False
    """Only where no name or noun comes before it."""
    always: bool = False
    """Even if the text goes on to bring more: after a colon, on a new line, in quotes."""
    broad: bool = False
    """Only for a conversation in progress."""


def listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _any(words: frozenset[str]) -> str:
    return f"({'|'.join(sorted(words))})"


MARK: Final = listed('. , : " ( )')
# What may stand on a line of its own above the question.
COURTESY: Final = listed(
    "hi hello hey dear all thanks thank you ok okay well so oh please good morning hola buenas buenos días gracias"
)

# -------------------------------------------------------------------------------------------------------- English words

BE: Final = listed("is are was were be been being am 's 're 'm isnt arent wasnt werent")
AUXILIARY: Final = BE | listed(
    """do does did dont doesnt didnt has have had 've hasnt havent hadnt will would can could should shall may might
    must 'll 'd wo ca cannot wont cant couldnt wouldnt"""
)
QUESTION: Final = listed("what which who whom whose when where why how")
PREPOSITION: Final = listed(
    """of in on at by for with without from to into onto about over under after before during since until till between
    among against through across within toward towards around near off out up down as than per via behind beyond despite
    except besides regarding concerning upon along inside outside amid throughout beside"""
)
SUBORDINATOR: Final = listed(
    "if when while after before since although though because as until unless once whether where whenever so than"
)
JOIN: Final = listed("and or but nor yet then")
PERSONAL: Final = listed("i me my mine myself you your yours yourself we us our ours")
SOMEBODY: Final = listed("someone somebody anyone anybody everyone everybody nobody something anything everything")
# Words that name nothing a pronoun could stand for: the above, adverbs, and the verbs and adjectives that questions are
# made of. What is not here counts as a name or noun, which errs towards a question that stands on its own.
_FUNCTION: Final = AUXILIARY | QUESTION | PREPOSITION | SUBORDINATOR | JOIN | PERSONAL | SOMEBODY
PLAIN: Final = _FUNCTION | listed(
    """a an the any some every each no either neither both all another other such n't not he she it they him her them
    his hers its their theirs himself herself itself themselves this that these those there here one ones none nothing
    others else same own more most less least much many few fewer several lot lots bit little enough also too very just
    only even ever never always often sometimes usually still again already now soon later earlier first last next twice
    ago back away together instead rather quite almost maybe perhaps really actually exactly basically currently today
    tomorrow yesterday tonight yes yeah yep nope ok okay sure please thanks thank hi hello hey well oh sorry let lets
    like good great bad better best worse worst big small long short longer shorter larger bigger old new young high
    higher low lower early late hard easy easier difficult simple simpler important interesting interested notable
    famous popular successful significant unusual special common possible impossible true false right wrong correct
    known able likely different similar main major certain clear ready available happen happens happened happening go
    goes went gone going come comes came coming get gets got gotten getting make makes made making take takes took taken
    taking give gives gave given giving done doing say says said saying tell tells told telling ask know knows knew
    think thinks thought mean means meant see sees saw seen seeing look looks find finds found want wants need needs
    likes try tries use uses using work works working call become becomes became begin begins began begun start starts
    stop keep keeps kept put puts leave leaves left feel feels felt show shows shown write writes wrote written win wins
    won lose loses lost sell sells sold bring brings brought buy bought build built hold held run ran sing sang sung
    fight fought teach taught meet met lead led pay paid send sent spend spent speak spoke spoken stand stood die grow
    grew fall fell hear heard learn turn move live play seem seems explain describe help helps change add include
    compare discuss talk read set cost costs hit cut rise rose break broke draw drew drive drove eat ate choose chose
    wear wore throw threw fly flew shoot shot sit sat understand understood mention wonder guess believe hope love hate
    wish care commit fix delete remove translate summarize rewrite repeat continue"""
)
# it: weather ("is it raining"); what has no subject ("does it matter", "how long is it until", "do it yourself")
WEATHER: Final = listed(
    """raining snowing hailing windy sunny cloudy cold hot warm humid foggy freezing chilly dark stormy rainy snowy wet
    rain snow freeze hail"""
)
IMPERSONAL: Final = listed(
    """matter matters seem seems seemed appear appears turns rain rains rained snow snows snowed looks sounds feels
    depends yourself comes easy hanging until since"""
)
# Between "it is" and its adjective: "is it still so much harder to".
DEGREE: Final = listed("more less most too so very always ever even still also really been n't not often as quite much")
# "was it able to", "is it the first to": "to" follows, but "it" is something.
RAISING: Final = MARK | listed(
    """able going supposed used about due meant designed ready similar related close connected compared married said
    thought considered called named located based made done written shown given sold seen go went come came belong the a
    an his her its their my your our part just only in on at from with for to by of likely say says get got start
    started lead led relate apply refer seek try want need have use continue manage happen"""
)
# What "it" announces begins with one of these.
ANNOUNCED: Final = listed("to that if when whether how why what")
# "how long does it take to", "what does it mean when"; not: "does it take place".
LASTING: Final = listed("take takes took taking cost costs mean means feel hurt make gonna")
CLOCK: Final = listed("time day date year month season hour hot cold warm far")
NOW: Final = listed("in at now right from there here today tomorrow please .")
# "it has been a week since"
SPAN: Final = listed("since and but hour hours day days week weeks month months year years")
# "I would appreciate it if", "make it easier to"
FRAMING: Final = listed("appreciate love hate like make making made makes find found think consider keep")
# Past participles that say something of a clause: "is it allowed to".
ALLOWED: Final = listed("allowed permitted required expected recommended needed advised known believed")
# May stand between a verb and its subject.
LIGHT: Final = listed("n't not ever also actually really first still even then just so")
# After these a word is a verb: to record, you download.
SUBJECT: Final = listed("to i you we they he she it who n't not")
PERSON: Final = listed(
    """man woman boy girl person guy lady gentleman friend wife husband spouse mother father mom mum dad parent son
    daughter brother sister sibling child kid baby uncle aunt cousin nephew niece grandfather grandmother king queen
    prince princess president senator minister pope saint god emperor general captain colonel doctor nurse patient
    teacher student pupil coach boss chief ceo actor actress athlete hero heroine villain character protagonist
    celebrity star champion model whoever human individual adult teenager user customer client guest host pilot chef
    judge victim suspect dog cat pet horse animal bird mr mrs ms dr sir candidate guide spy monk nun bride groom thief
    neighbor neighbour"""
)
# What may follow the object of a clause; behind a possessive "her" a noun would.
AFTER_OBJECT: Final = listed("again now today too back away better more")
RELATIVE: Final = listed("that who which")
# this week, this fine day
TIME: Final = listed(
    """second minute hour day week month year morning afternoon evening night weekend summer winter spring fall autumn
    quarter season semester century decade millennium moment instant coming past next last upcoming monday tuesday
    wednesday thursday friday saturday sunday january february march april may june july august september october
    november december christmas easter halloween thanksgiving holiday days weeks months years mornings"""
)
# Between two clauses of a sentence, the first of which may say what "that" is.
EDGE: Final = listed("and but so because if when or what how why . , ( )")
# those who, those in
THOSE: Final = listed("who that which with in of whose from on at where without under over around near for to outside")
# Begins the clause that "that" joins.
START: Final = listed("i you we he she it they there the a an my your his her their our")
# "translate that to", "say that again"
ACT: Final = listed(
    """do did explain translate repeat summarize summarise rewrite change fix use try make put cancel stop undo delete
    say said mean meant redo convert turn clarify shorten expand simplify rephrase send show check"""
)
# "said that in 1990": mostly a clause follows.
SAY: Final = listed("say said mean meant show")
AGAIN: Final = listed("again please more further now better")
NOT_THERE: Final = AUXILIARY | listed("hi hello hey out n't not , .")
THERE_IS: Final = AUXILIARY | listed("exist exists seem seems ever really any a an no some")
# broad: a past, and what needs no telling in it
PAST: Final = listed("did was were had wasnt werent didnt hadnt")
HAPPENED: Final = listed(
    """happened won wrote made became sold sang led began took came went got lost left said broke ran"""
)
UNIQUE: Final = listed(
    """weather time date sun moon earth world internet sky ocean sea news government universe bible web planet future
    past country economy market capital president law environment night morning evening day week month year weekend
    difference us usa uk un eu years"""
)
# Nobody knows which article, in any tense.
TEXT: Final = listed("article passage text document page story")
# Picked out by the phrase itself: the first, the name of, the man who.
PICKED: Final = listed("first second third last next most least best worst same only current main following two")
TELLING: Final = listed("of that who which whose 's to between from called named known in for")

# --------------------------------------------------------------------------------------------------------- English cues

_WH: Final = _any(QUESTION)
_VERB: Final = _any(AUXILIARY)
_ASK: Final = _any(QUESTION | AUXILIARY)
_IN: Final = _any(PREPOSITION)
# With a verb or a speaker in it a fragment is a clause after all.
_CLAUSE: Final = f" {_any(AUXILIARY | PERSONAL)} "
_STOP: Final = "($|[.,])"
_ASIDE: Final = " (besides|than|aside|apart|except|excluding|addition) "
_OPENERS: Final = (
    "((please|now|then|just|ok|okay|and|well|so|oh|(hi|hey|hello)( there)?|great|cool|(can|could|would|will) you|"
    "thanks|thank you|,|[.]) )*"
)
_REPLY: Final = (
    "(yes|yeah|yea|yep|yup|no|nope|nah|exactly|right|correct|true|false|wrong|maybe|perhaps|possibly|agreed|indeed|"
    "absolutely|definitely|certainly|probably|of course|not really|not at all|not sure|go on|go ahead|continue|proceed|"
    "carry on|keep going|next|more|again|once more|one more|one more time|try again|same|neither|both|either|none|"
    "another|another one|me too|really|seriously|please do|ok|okay|sure|undo|redo|retry|sounds good|for example|"
    "for instance|such as|like what|like who|in what way|says who|so what|now what|"
    "i (do|am|did|will|would|can|agree|disagree)( n't| not)?)"
)
_SAID: Final = (
    "(answers?|responses?|reply|messages?|examples?|explanation|solution|suggestions?|output|version|questions?|points?|"
    "statement|summary|sentence|paragraph|task|results?|list|code|text|story|poem|email|draft|conversation|option|"
    "reasons?)"
)
_ANSWER: Final = "(answer|response|reply|explanation|solution|example|message|suggestion)"
_REWORK: Final = (
    "(translate|rewrite|rephrase|reword|paraphrase|summari[sz]e|shorten|simplify|redo|revise|reformat|reformulate)"
)
_EDIT: Final = "(evaluate|critique|improve|check|review|change|modify|alter|update|amend|rework|edit|repeat)"
_SHAPE: Final = (
    "(shorter|longer|simpler|clearer|easier|faster|slower|louder|quieter|better|funnier|nicer|bigger|smaller|cheaper|"
    r"bolder|stronger|softer|briefer|(more|less|too) \S+|more|less)"
)
_GIVE: Final = "(give|tell|show|suggest|write|list|name|provide|share|recommend|generate|try|find|make|do)( me| us)?"
ENGLISH: Final = (
    # your previous answer
    Cue(
        "earlier",
        f" your (own )?(previous|last|earlier|prior|above|original|initial|latest|first|second|third) {_SAID} ",
        always=True,
    ),
    # the last example; the previous one
    Cue("earlier", f" (the|my|from|on) (previous|last|earlier|prior|above|preceding) ({_SAID}|ones?) ", bare=True),
    # the above
    Cue("earlier", rf" the above (\S+ )?{_STOP}"),
    # what is wrong in your solution
    Cue("earlier", f"^ {_OPENERS}{_ASK} ([^.]* )?(in|of|to|from|about|with) your {_ANSWER} ", always=True),
    # evaluate and improve your answer
    Cue("earlier", rf"^ {_OPENERS}([^.]* )?({_REWORK}|{_EDIT})( and \S+)? your (own )?{_ANSWER} ", always=True),
    # what you said
    Cue(
        "earlier",
        " (what|as|like|that|thing|things) you (just |already )?"
        "(said|mentioned|told me|wrote|suggested|listed|described|explained|were saying) ",
    ),
    # is the latter cheaper; not: the latter half, the former president
    Cue("earlier", " the latter ", " the latter (half|part|days|years|stages?) "),
    Cue("earlier", f" the former ({_STOP}|({_VERB}|{_IN}|{_any(JOIN)}) )"),
    # the other one
    Cue("earlier", " the (first|second|third|fourth|fifth|last|next|other|previous|final) ones? ", bare=True),
    # what about the others
    Cue("earlier", f" the (others|rest|two|other|same|other two) {_STOP}", bare=True),
    # what about Spain; not: how about a joke
    Cue(
        "ellipsis",
        f"^ {_OPENERS}(what|how) about ",
        r" how about (a|an|some|any|we|i|you|your|my|\S+ing) ",
        always=True,
    ),
    # why; who won; how so
    Cue(
        "ellipsis",
        rf"^ {_OPENERS}((or|but|{_IN}) )?({_WH}|(what|which|who|whose|whom) \S+|"
        "(why|how|when|where) (so|not|come|else|then|exactly|though|again|next|many|much|far|often|old|big)) $",
        f"^ {_WH} {_VERB} $",
    ),
    # how many years; what kind of music
    Cue("ellipsis", rf"^ {_OPENERS}({_IN} )?(how (many|much|long)|(what|which)( \S+)? (kind|type|sort)s? of)( \S+)? $"),
    # in what film
    Cue("ellipsis", rf"^ {_IN} (what|which|whose|whom)( \S+){{0,4}} $", _CLAUSE),
    # in French; without sugar
    Cue("ellipsis", rf"^ {_OPENERS}{_IN}( \S+){{1,3}} {_OPENERS}$", f"{_CLAUSE}| {_WH} "),
    # and Texas
    Cue(
        "ellipsis",
        r"^ (and|or|but)( \S+){1,6} $",
        f"{_CLAUSE}|^ (and|or|but) ({_WH}|please|tell|give|show|let|make|play|call|set) ",
    ),
    # what happened after; what came next
    Cue(
        "ellipsis",
        f" (after|before|afterwards?|thereafter|since|until|then|next|meanwhile|subsequently) {_STOP}",
        f" {_any(PERSONAL)} ",
        bare=True,
    ),
    # since then
    Cue("ellipsis", " (since|until|before|by|back|from) then "),
    # do you think so
    Cue("ellipsis", " (think|thinks|say|says|believe|hope|do|did|does|is) so $", bare=True),
    # if so, how
    Cue("ellipsis", "^ if (so|not) "),
    # did you
    Cue("ellipsis", f"^ {_VERB} (n't )?(i|you|we) $"),
    # yes
    Cue("continuation", f"^ {_OPENERS}({_REPLY} {_OPENERS})+$", "^ thank"),
    # shorter please; a bit more formal
    Cue(
        "continuation",
        f"^ {_OPENERS}((a bit|a little|a lot|much|even|slightly|way|make|try|be|say|something) )*{_SHAPE} "
        f"((version|details?|examples?|info|information) )?{_OPENERS}$",
    ),
    # explain in more detail
    Cue(
        "continuation",
        f"^ {_OPENERS}({_REWORK}|elaborate|repeat|continue|explain|clarify|expand) "
        r"((again|further|more|better|now|in (more |greater |simple )?(details?|depth|terms)|\S+er|more \S+) )*"
        f"{_OPENERS}$",
    ),
    # translate to French
    Cue(
        "continuation",
        f"^ {_OPENERS}{_REWORK} (to|into|in|as|with|using|for|without|so|like) ",
        " (how|what|why|the following|where|when|which|for me|for us) ",
    ),
    # tell me more
    Cue("continuation", f"^ {_OPENERS}(tell|show|give) me more {_OPENERS}$"),
    # but I have no oven
    Cue("continuation", "^ (also|but|instead|additionally|otherwise|furthermore|moreover) ", "^ instead of "),
    # now in French
    Cue(
        "continuation",
        "^ now (, )?(do|make|explain|write|add|use|try|give|change|translate|convert|rewrite|show|in|with|"
        "the|for|as|replace|let|we) ",
        always=True,
    ),
    # then why
    Cue("continuation", f"^ then (, )?{_ASK} "),
    # do the same for
    Cue("continuation", " the same (task|thing|question|way|for|with|again|exercise) ", bare=True),
    # what else
    Cue("comparative", " (what|who|where|when|how|why|which|whom|anything|anyone|anybody|anywhere) else ", _ASIDE),
    # any other songs
    Cue("comparative", " (any|what|which|some|no|was there|were there|is there|are there) others? ", _ASIDE),
    # give me another example
    Cue(
        "comparative",
        rf"^ {_OPENERS}{_GIVE} (another|(some |a few |\S+ )?(other|more)) ",
        " (about|on|than|for|of|to|from|with) ",
    ),
    # is there another way
    Cue(
        "comparative",
        " (a different one|another one|another way|something similar|similar (ones?|examples?|questions?)) ",
        bare=True,
    ),
    # which is more likely
    Cue(
        "comparative",
        r"^ ((and|so|but|then|,) )*which (is|was|are|were|'s|would be|has|had|do you|would you|should i)( \S+){1,3} $",
        " (or|than|between|in|of|the) ",
    ),
    # which of them
    Cue("comparative", "^ ((and|so|but|then|,) )*which (ones?|of (them|these|those|the two)) ", " (or|between) "),
    # what differs between the two
    Cue("comparative", f" (between|of) the two {_STOP}"),
    # so they never met again
    Cue("continuation", "^ (and|or|so) ", broad=True),
    # any cousins
    Cue("ellipsis", r"^ (any|anything|anyone|some|other|more)( \S+){0,8} $", f" {_VERB} ", broad=True),
    # the other members
    Cue("comparative", " (the others?|some others?|else|anymore|any more) ", broad=True),
    # were other doors open
    Cue("comparative", f"^( {_ASK})+ (other|another) ", broad=True),
    # was Ann there too
    Cue("comparative", " (too|as well|again) $", broad=True),
    # who was king at the time
    Cue("earlier", " (at|by|around|during) the time ", broad=True),
)

# -------------------------------------------------------------------------------------------------------- Spanish words

SPANISH_VERB: Final = listed(
    """es son era eran fue fueron ser está están estaba estar hay había hubo ha han he tiene tienen tenía tuvo puede
    pueden puedo podría puedes podrías debe debo va van voy iba hace hacen hizo hacer dice dijo quiere quiero necesito
    sabe sabes cuesta llama llamaba significa funciona pasa pasó ocurre ocurrió murió nació vive vivió ganó escribió
    sirve existe existen empieza empezó termina terminó explicar dar da dio ver poner sería fuera llueve quedó queda"""
)
SPANISH_PRONOUN: Final = listed("él ella ello ellos ellas su sus")
SPANISH_NEUTER: Final = listed("esto eso aquello ahí allí allá")
SPANISH_DETERMINER: Final = listed("este esta estos estas ese esa esos esas aquel aquella aquellos aquellas")
SPANISH_PLAIN: Final = (
    SPANISH_VERB
    | SPANISH_PRONOUN
    | SPANISH_NEUTER
    | SPANISH_DETERMINER
    | listed(
        """el la los las un una unos unas de del al en y o e u ni a con sin por para ante bajo desde durante entre hacia
    hasta mediante según sobre tras pero sino aunque porque como si que qué quién quiénes cuál cuáles cómo cuándo dónde
    adónde cuánto cuánta cuántos cuántas cuando donde quien cual cuyo se lo le les me te nos os yo tú nosotros usted
    ustedes mí ti mi mis tu tus nuestro nuestra nuestros nuestras aquí acá todo toda todos todas cada algún alguna
    algunos algunas alguien algo nada nadie ningún ninguna mismo misma otro otra otros otras tan tanto mucho mucha
    muchos muchas poco poca más menos muy bien mal mejor peor mayor menor grande pequeño nuevo nueva viejo bueno buena
    malo mala primero primera segundo segunda último última anterior siguiente siempre nunca también todavía aún ya hoy
    ayer mañana luego después antes ahora entonces además quizá quizás solo sólo así casi sí no favor gracias hola vale
    ok claro cierto verdad posible importante interesante fácil difícil corto corta largo larga simple sencillo dime
    dame cuéntame explica explícame haz pon di muestra muéstrame escribe traduce resume repite cambia corrige continúa
    sigue"""
    )
)
SPANISH_TIME: Final = listed(
    """segundo minuto hora día semana mes año mañana tarde noche fin verano invierno primavera otoño trimestre curso
    siglo década momento instante lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo
    junio julio agosto septiembre octubre noviembre diciembre navidad días semanas meses años vez"""
)
# "esta" is often "está" without its accent: esta en.
SPANISH_NOT_ESTA: Final = listed("el la los las un una en muy tan bien mal por a de del con mi tu su que y o es más")
# ¿quién lo escribió?, ¿cómo lo hago?; not: lo que, lo mejor.
SPANISH_BEFORE_LO: Final = listed("quién quiénes cuándo cómo dónde qué no me te se ya siempre y si")
SPANISH_NOT_LO: Final = listed(
    """que de mejor peor más menos mismo anterior siguiente primero último único demás bueno malo cual"""
)
# Nouns and names that end like "explícalo" and "hacerlo".
SPANISH_NOT_ENCLITIC: Final = listed(
    """águila águilas ávila ángela ángelo cábala cábalas escándalo escándalos óvalo óvalos sándalo vándalo vándalos
    pétalo pétalos búfalo búfalos ópalo ópalos sábalo charla charlas carlos carla karla"""
)

# --------------------------------------------------------------------------------------------------------- Spanish cues

_ES_OPENERS: Final = "((por favor|porfa|gracias|ahora|pues|bueno|y|pero|puedes|podrías|,|[.]) )*"
_ES_REPLY: Final = (
    "(sí|si|no|vale|ok|claro|claro que sí|correcto|exacto|de acuerdo|continúa|continua|sigue|prosigue|adelante|más|"
    "otra vez|de nuevo|dale|venga|quizás?|tal vez|puede ser|también|tampoco|ninguno|ninguna|ambos|ambas|los dos|"
    "las dos|por supuesto|por qué|por qué no|para qué|cómo|cuándo|dónde|quién|quiénes|cuál|cuáles|cuánt[oa]s?|qué|"
    "cómo así|por ejemplo|desde cuándo|hasta cuándo|de dónde|a dónde|adónde|con quién|en serio|eso|luego|entonces|"
    "después|qué más|quién más|algo más|repite|explica|amplía|resume|traduce|verdad|otro|otra|en qué sentido|como cuál|"
    "como cuáles)"
)
_ES_SAID: Final = (
    "(respuestas?|mensaje|preguntas?|ejemplos?|versión|puntos?|texto|código|lista|explicación|solución|resultado|frase|"
    "párrafo)"
)
_ES_REWORK: Final = (
    "(traduce|resume|reescribe|reformula|repite|explica|amplía|acorta|simplifica|corrige|traducir|resumir|reescribir|"
    "repetir|continúa|sigue|explícame)"
)
_ES_ASIDE: Final = " (que|aparte|además de|excepto|salvo) "
SPANISH: Final = (
    # lo anterior
    Cue("earlier", f" (lo|el|la|los|las) anterior(es)? ({_STOP}|(por|al|en|a|con|de nuevo) )"),
    # la respuesta anterior
    Cue("earlier", f" {_ES_SAID} (anterior|anteriores|previa|previo|de antes|de arriba) "),
    # tu respuesta
    Cue("earlier", f" tus? (última |último |anterior |primera |segunda |propia )?{_ES_SAID} ", always=True),
    # como dijiste
    Cue("earlier", " (dijiste|mencionaste|comentaste|explicaste|decías|escribiste|sugeriste|propusiste|has dicho) "),
    # el segundo
    Cue(
        "earlier",
        " (el|la|los|las) (primer[oa]|segund[oa]|tercer[oa]|últim[oa]|otr[oa]s?|demás|mism[oa]|dos) $",
        bare=True,
    ),
    # ¿y en Madrid?
    Cue(
        "ellipsis", r"^ (y|o|pero|e)( \S+){1,6} $", rf" ({_any(SPANISH_VERB)}|dime|dame|\S+(ó|aron|ieron|aban?|ían?)) "
    ),
    # en francés, por favor; not: por favor, de nada
    Cue(
        "ellipsis",
        rf"^ {_ES_OPENERS}(en|con|sin|para|de|a|por|desde|hasta)( \S+){{1,3}} {_ES_OPENERS}$",
        f" ({_any(SPANISH_VERB)}|dónde|nada|favor|gracias|mí|qué|quién) ",
    ),
    # ¿cuándo nació?; ¿y cuánto cuesta?; ¿cuántos habitantes tiene?; not: ¿qué pasa?
    Cue(
        "ellipsis",
        rf"^ (y )?((por qué|quién|cuándo|dónde|cuánto|cómo|qué) {_any(SPANISH_VERB)}|"
        r"cuánt[oa]s \S+ (tiene|tienen|tuvo|ganó)) $",
        " (qué (hay|pasa)|cómo (está|están|va|he)) ",
    ),
    # ¿y si llueve?
    Cue("ellipsis", "^ y (si|qué pasa|qué tal|qué hay|por qué|cómo|para qué) "),
    # ¿qué hay de Francia?
    Cue("ellipsis", "^ qué (tal|hay) (con|de|en|para) "),
    # ¿qué pasó después?
    Cue("ellipsis", " (después|luego|antes|entonces|a continuación) $", bare=True),
    # sí
    Cue("continuation", f"^ {_ES_OPENERS}({_ES_REPLY} {_ES_OPENERS})+$"),
    # más corto, por favor
    Cue("continuation", rf"^ {_ES_OPENERS}((un poco|algo|mucho|aún|todavía) )*(más|menos) \S+ {_ES_OPENERS}$"),
    # explica mejor
    Cue(
        "continuation",
        rf"^ {_ES_OPENERS}{_ES_REWORK} ((mejor|de nuevo|otra vez|con más detalles?|en detalle|más \S+|más) )*"
        f"{_ES_OPENERS}$",
    ),
    # traduce al inglés
    Cue(
        "continuation",
        f"^ {_ES_OPENERS}{_ES_REWORK} (al|en|a|con|como|para|sin) ",
        " (cómo|qué|por qué|cuándo|dónde|el|la|los|las|un|una|siguiente) ",
    ),
    # cuéntame más
    Cue(
        "continuation",
        f"^ {_ES_OPENERS}(dame|dime|cuéntame|muéstrame) más ((detalles?|ejemplos?|información) )?{_ES_OPENERS}$",
    ),
    # también
    Cue("continuation", "^ (también|además|en cambio|en vez de eso|pero) "),
    # ahora en francés
    Cue("continuation", "^ ahora (, )?(en|con|sin|para|al|haz|escribe|traduce|pon|añade|cambia|explica|resume) "),
    # ¿quién más?
    Cue("comparative", " (qué|quién|quiénes|algo|alguien|dónde|cuándo|cómo|nada|cuáles) más ", _ES_ASIDE),
    # dame otro ejemplo
    Cue(
        "comparative",
        " (dame|dime|muéstrame|sugiere|escribe|cuéntame|pon|hay|tienes|qué|cuál|cuáles|algún|alguna) otr[oa]s? ",
        _ES_ASIDE,
    ),
    # ¿cuál es mejor?
    Cue(
        "comparative",
        "^ ((y|pero|entonces) )?cuál(es)? (de (los dos|las dos|ellos|ellas) )?(es|era|sería|fue|son|serían) "
        r"((el|la|los|las) )?(mejor|mejores|peor|mayor|menor|más \S+|menos \S+) $",
    ),
    # ¿y cuándo llegó?
    Cue("continuation", "^ (y|o|así que|entonces) ", broad=True),
    # ¿alguna prima?
    Cue("ellipsis", r"^ (algún|alguna|algunos|algunas|algo|otro|otra)( \S+){0,6} $", broad=True),
    # ¿ganó otros premios?
    Cue("comparative", " (otr[oa]s?|también|además|de nuevo) ", broad=True),
)
