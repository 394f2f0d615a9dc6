"""Readable names for synthetic tokens, any number of them."""

# ruff: noqa: SIM905 - words are easier to read and to extend as text

from collections.abc import Iterator, Sequence
from itertools import product

NEGATIVE = """
painful boring awful terrible dreadful horrible lousy tedious clumsy dull bland annoying poorly
disappointing pointless lifeless predictable unfunny ridiculous forgettable mediocre wooden
incoherent laughable pathetic worthless lame sloppy cheesy shallow dismal atrocious unwatchable
insulting stale irritating mess waste worst fails
""".split()

POSITIVE = """
terrific delightful wonderful superb excellent brilliant charming touching gripping moving
hilarious beautiful stunning masterful refreshing perfect memorable outstanding fantastic
remarkable heartfelt witty captivating magnificent amazing dazzling engaging flawless graceful
inspired joyful lovely thrilling uplifting vivid splendid marvelous favorite best loved
""".split()

# Themes of more than two classes, which have no order.
THEMES = {
    "sport": """goal striker league referee stadium coach penalty tournament midfield champion
        racket sprint medal wicket rugby tennis batting jersey playoff dribble""".split(),
    "science": """electron galaxy enzyme molecule telescope genome neutron protein orbit fossil
        laboratory hypothesis photon bacteria isotope quantum microscope catalyst comet
        neuron""".split(),
    "music": """guitar melody chorus orchestra album singer drummer concert violin rhythm piano
        symphony lyrics tempo jazz harmony quartet soprano ballad encore""".split(),
    "food": """recipe oven butter garlic flour roasted spices dessert pasta kitchen simmer onion
        chocolate baking vinegar salad soup lemon pepper cheese""".split(),
    "travel": """airport passport luggage hostel itinerary sightseeing cruise visa tourist hotel
        souvenir flight harbor museum backpack island customs beach railway guidebook""".split(),
    "finance": """shares dividend mortgage inflation investor bond broker profit merger revenue
        bankruptcy currency loan audit hedge equity lender tariff deficit portfolio""".split(),
    "health": """vaccine surgeon symptom dosage clinic diagnosis therapy patient nurse fever
        infection hospital pharmacy allergy asthma insulin chronic immune biopsy remedy""".split(),
    "computing": """compiler keyboard server database firmware browser kernel algorithm software
        bandwidth encryption router debugger processor laptop syntax cursor malware backup
        download""".split(),
    "law": """attorney verdict plaintiff courtroom statute felony testimony judge appeal lawsuit
        jury defendant warrant prosecutor parole custody bail subpoena litigation
        clerk""".split(),
    "garden": """compost tulip seedling pruning orchard mulch hedgerow watering greenhouse lawn
        weeds trowel petals fertilizer pollen shrub rosebush herbs blossom soil""".split(),
}

# In order of frequency: with zipf_exponent the first have most occurrences.
IRRELEVANT = """
the and of to is it in this that was as with for but on not he are his have be one at they you
all who an by from her has so about there out what more when some if just she up can time story
only had would my which their scene other people see character make also into way him after
first think two then movie film could made being most than them because does here plot did over
know much even many where these such little say off ever before really years life man while
never through work part find another actors set should though watch world day around same house
old actually family again look between own young director every long quite place far screen money
script role since perhaps home seen both small room night might course school year camera turn
street hand during job later sound table town half early book word car window door friend city
morning water minute sister side voice question paper group moment picture series summer corner
episode letter number village evening season winter river bridge forest market train doctor
""".split()


def unique_names(words: Sequence[str], n: int, taken: set[str]) -> list[str]:
    """Return `n` words or compounds of words that are not in `taken`, and add them to it."""
    names: list[str] = []
    for name in _compounds(words):
        if len(names) == n:
            break
        if name not in taken:
            taken.add(name)
            names.append(name)
    return names


def _compounds(words: Sequence[str]) -> Iterator[str]:
    """Yield the words, then all pairs of them, all triples, and so on without end."""
    size = 1
    while True:
        for parts in product(words, repeat=size):
            yield "".join(parts)
        size += 1
