"""Published judgements, as facts with their source: counts and orders to learn on and to test against.

Arrays of counts are [N, N], wins of row over column, as `Comparisons.from_wins` takes them; ties are symmetric. Both
are read-only. Rankings and labels come from functions.

>>> from rmjax import Comparisons
>>> from rmjax.preferences import fit, published
>>> season = fit(Comparisons.from_wins(published.BASEBALL))
>>> milwaukee, baltimore = (published.TEAMS.index(team) for team in ("Milwaukee", "Baltimore"))
>>> round(season.contrast(milwaukee, baltimore).value, 4)
1.5814
"""

from __future__ import annotations

import numpy as np

from rmjax.comparisons import Rankings


def _counts(*rows: tuple[int, ...]) -> np.ndarray:
    table = np.array(rows)
    table.setflags(write=False)
    return table


# Agresti, Categorical Data Analysis, 2nd ed. 2002, section 10.6: the American League of 1987. Wins of the row at home
# over the column, and its losses at home; every two teams met 13 times.
TEAMS = ("Baltimore", "Boston", "Cleveland", "Detroit", "Milwaukee", "New York", "Toronto")
BASEBALL_HOME_WINS = _counts(
    (0, 1, 3, 1, 2, 2, 1),
    (6, 0, 5, 2, 5, 4, 3),
    (2, 4, 0, 3, 2, 4, 3),
    (4, 6, 6, 0, 3, 4, 4),
    (6, 6, 4, 4, 0, 4, 4),
    (6, 4, 4, 5, 3, 0, 2),
    (6, 4, 4, 4, 2, 2, 0),
)
BASEBALL_HOME_LOSSES = _counts(
    (0, 6, 4, 5, 5, 4, 6),
    (0, 0, 2, 5, 1, 2, 3),
    (4, 2, 0, 3, 5, 3, 4),
    (3, 0, 1, 0, 3, 3, 2),
    (0, 1, 2, 3, 0, 3, 2),
    (1, 3, 2, 1, 3, 0, 5),
    (0, 3, 2, 3, 5, 4, 0),
)
# Table 10.11 of the same: wins wherever the game was.
BASEBALL = _counts(*(BASEBALL_HOME_WINS + BASEBALL_HOME_LOSSES.T))

# Stigler, Citation patterns in the journals of statistics and probability, Statistical Science 9 (1994), in Agresti
# 2002, p. 448: how often the column cites the row, which counts as a win of the row.
JOURNALS = ("Biometrika", "Comm. Statist.", "JASA", "JRSS-B")
CITATIONS = _counts(
    (0, 730, 498, 221),
    (33, 0, 68, 17),
    (320, 813, 0, 142),
    (284, 276, 325, 0),
)

# Davidson, On extending the Bradley-Terry model to accommodate ties in paired comparison experiments, Journal of the
# American Statistical Association 65 (1970): six chocolate puddings.
PUDDING = _counts(
    (0, 19, 16, 18, 13, 18),
    (22, 0, 19, 23, 16, 22),
    (19, 19, 0, 19, 16, 13),
    (23, 19, 20, 0, 17, 14),
    (19, 20, 15, 14, 0, 11),
    (21, 20, 18, 19, 21, 0),
)
PUDDING_TIES = _counts(
    (0, 16, 12, 13, 18, 12),
    (16, 0, 10, 9, 12, 12),
    (12, 10, 0, 15, 17, 10),
    (13, 9, 15, 0, 16, 18),
    (18, 12, 17, 16, 0, 12),
    (12, 12, 10, 18, 12, 0),
)

# Springall, Response surface fitting using a generalization of the Bradley-Terry paired comparison model, Applied
# Statistics 22 (1973): nine treatments of three levels of flavour by three. Which answer counts as a win is not certain
# here: as coded, a high level of flavour (treatments 3, 6 and 9) comes out lowest.
SPRINGALL = _counts(
    (0, 16, 21, 10, 15, 22, 3, 9, 12),
    (2, 0, 11, 2, 6, 12, 2, 3, 2),
    (0, 6, 0, 2, 4, 4, 1, 0, 2),
    (5, 17, 22, 0, 14, 18, 6, 6, 9),
    (2, 9, 14, 3, 0, 11, 0, 2, 5),
    (0, 8, 11, 2, 5, 0, 1, 1, 2),
    (12, 24, 24, 12, 20, 27, 0, 13, 21),
    (13, 16, 22, 10, 15, 19, 2, 0, 8),
    (10, 15, 17, 8, 13, 18, 2, 6, 0),
)
SPRINGALL_TIES = _counts(
    (0, 7, 1, 10, 7, 2, 9, 5, 3),
    (7, 0, 5, 7, 8, 6, 0, 5, 7),
    (1, 5, 0, 4, 5, 7, 3, 3, 6),
    (10, 7, 4, 0, 9, 4, 5, 6, 11),
    (7, 8, 5, 9, 0, 9, 2, 5, 9),
    (2, 6, 7, 4, 9, 0, 0, 5, 2),
    (9, 0, 3, 5, 2, 0, 0, 8, 5),
    (5, 5, 3, 6, 5, 5, 8, 0, 8),
    (3, 7, 6, 11, 9, 2, 5, 8, 0),
)

# Netflix Prize, four films as 588 people ordered them, counted by pair (PrefLib, ED-00004-138).
NETFLIX = _counts(
    (0, 205, 334, 368),
    (383, 0, 412, 464),
    (254, 176, 0, 317),
    (220, 124, 271, 0),
)

# Kamishima, Nantonac collaborative filtering, KDD 2003: ten kinds of sushi as 5,000 people ordered them, counted by
# pair (PrefLib). By number, without names, which are off by one in copies.
SUSHI = _counts(
    (0, 2152, 2848, 2570, 2428, 3449, 1420, 2859, 3785, 2373),
    (2848, 0, 3395, 2809, 2701, 3808, 1285, 3625, 4347, 2823),
    (2152, 1605, 0, 2316, 2025, 3117, 1131, 2503, 3847, 1815),
    (2430, 2191, 2684, 0, 2413, 2941, 1421, 2645, 3311, 2338),
    (2572, 2299, 2975, 2587, 0, 3349, 1477, 2964, 3754, 2541),
    (1551, 1192, 1883, 2059, 1651, 0, 893, 1779, 3288, 1427),
    (3580, 3715, 3869, 3579, 3523, 4107, 0, 4101, 4414, 3557),
    (2141, 1375, 2497, 2355, 2036, 3221, 899, 0, 4103, 1932),
    (1215, 653, 1153, 1689, 1246, 1712, 586, 897, 0, 777),
    (2627, 2177, 3185, 2662, 2459, 3573, 1443, 3068, 4223, 0),
)

# Dawid and Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm, Applied Statistics 28
# (1979), table 1: how fit 45 patients are for anaesthesia, classes 1 to 4. The first anaesthetist judged every patient
# three times, the four others once: three digits a patient, in ascending order, and then one each.
_FITNESS = """
1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223
2232223 4444444 2223343 1111111 2223212 1121111 1112111 1111111 1111111
2222221 2221322 2222222 2222221 2223222 1222222 1111111 1111111 2232222
1111111 1111111 1121121 1111111 3333233 1111111 2222222 2223232 3344343
1222232 2233233 3333432 1111111 1111111 1122111 2232222 1121111 2222222
"""
_JUDGE = (0, 0, 0, 1, 2, 3, 4)

# Critchlow and Fligner, Paired comparison, triple comparison, and ranking experiments as generalized linear models,
# Psychometrika 56 (1991): salads A to D from the most tart, and how many of 32 people ordered them so.
_SALAD = {
    "ABCD": 2,
    "BACD": 1,
    "BADC": 2,
    "CABD": 1,
    "BCAD": 2,
    "BDAC": 1,
    "DCAB": 1,
    "BCDA": 11,
    "BDCA": 6,
    "CBDA": 3,
    "CDBA": 1,
    "DCBA": 1,
}

# The same 588 people of the Netflix Prize: how often each order of the films 1 to 4 was theirs.
_NETFLIX = {
    "1234": 44,
    "1243": 53,
    "1324": 22,
    "1342": 10,
    "1423": 14,
    "1432": 8,
    "2134": 49,
    "2143": 68,
    "2314": 37,
    "2341": 36,
    "2413": 39,
    "2431": 29,
    "3124": 19,
    "3142": 7,
    "3214": 37,
    "3241": 31,
    "3412": 8,
    "3421": 17,
    "4123": 10,
    "4132": 1,
    "4213": 16,
    "4231": 17,
    "4312": 9,
    "4321": 7,
}

# Hunter, MM algorithms for generalized Bradley-Terry models, Annals of Statistics 32 (2004), section 6: the NASCAR
# Winston Cup of 2002. One race a line, the winner first, two digits a driver.
_FINISHES = """
82171947525066713141013061123605596532765562546913427034114378025103084440603338481481
51710381593031650243014782664076326044375013416134112436330517783858425448550852061270
71335066813612013037650360513411311338478252062444424317784859413254054061767058086902
81113651596582507166470612764831136117603043334238374154023470085869014003054452321624
711744116636655131013060024852333834065403407658320870475013822441614281370573125969
47376011035136346544504859338176130871610142547382303202125231225840240566704106171638
51315060813671370176655441591332173370734840471244062452580302341842086929053066611182
035181121176605030473371528224651370414837323173540502172259014306613642580834186640
11524731711236653048241905608232375901764302544272087044815113346173183350404117035566
36476001501271651352326120664131488230517673054038343708810254587203441159331724706942
816630503351317259377138320142240222054017084852657047541382360376735811611260443418
50515960318136520165717648034061084212321324025437180534223847721744116470733330668245
36013066123159610217814771087603657860485254377072243444131180400905334282327351501638
12503671313081526513081148591742607861413724730503720270220140668232513354764447380718
511266523141656050470148133659812432193071114003421744373854767361057033021508722882
60817647321750016640615403441241483859130852730563786533301102352434363731425182040071
52657137501178368219441733766002017048083231594042246613615147033073123854058169554341
44318136664701615011123276510271130360591740544865787308430572373833702434553042825274
82321265667861474417373003713650603433525976114240020572317024735101130848548156384619
01477112664481517660033150823630595202421713403861324808544124370519153411335565465673
01655166443173613612038176421352246032387511023448407150308237435978175441083319470555
81666157606730785250403204443336651302820131037941340842487176055159114312387354473917
12814430507136413211516003425233591331406101026548781754827066347637382415054755730880
31651144514771370355024130424859010840613452508133733812547649051336326682246068151778
31660171128247813630503248590311613717333865025243427508136076557841807351540544344056
51663211785060821333735536436501484447055954220838423461408112032017415277193031763771
66478141035912523651116042313750614365307140013313322034737655384408170522824845567854
36501251813047665941135232606548610154337142381117734355404480082077374531762378033482
31666538011151813336447661404843321755601303413750523442307347547178252074591256800882
11816047327366521282306165515948684001333770783403264454055013644308551736763841423129
260381316536306611135247341273505541174876444054430502333208423782510159786160382270
47416011823659126550810340536673305251130876613702425533757844325417223148051972380123
47381281113126505166523003487382651713615936413276543375803755600105024315080744784240
41504730315403515932611243812617134052603342667320446538084837762111250536020182227855
51653150114713811217433060403641446682527378375433766155020127483859326442150326106880
47383050316601361702558241651275738160441126435920614276032548193315275408324051523713
"""
DRIVERS = 83
_STARTERS = 43  # in a race, the four dropped drivers among them


def anaesthetists() -> np.ndarray:
    """How often each anaesthetist put each patient in each class: [45 patients, 5 anaesthetists, 4 classes]."""
    counts = np.zeros((45, 5, 4), int)
    for patient, labels in enumerate(_FITNESS.split()):
        np.add.at(counts[patient], (_JUDGE, [int(label) - 1 for label in labels]), 1)
    return counts


def salad() -> Rankings:
    """Twelve orders of four salads, weighted by the people who gave them."""
    orders = [["ABCD".index(name) for name in order] for order in _SALAD]
    return Rankings.from_lists(orders, prompt=[0] * 4, weight=list(_SALAD.values()))


def netflix() -> Rankings:
    """All 24 orders of four films, weighted by the people whose they were; `NETFLIX` counts their pairs."""
    orders = [[int(film) - 1 for film in order] for order in _NETFLIX]
    return Rankings.from_lists(orders, prompt=[0] * 4, weight=list(_NETFLIX.values()))


def nascar(*, all_drivers: bool = False) -> Rankings:
    """The 36 races of 83 drivers, which have a maximum of the likelihood; or of 87, which have none.

    Four drivers never finished ahead of anyone, and the 83 are the others. Five races have a place that none of the 83
    took; with `all_drivers` the four stand there as drivers 83 to 86, last, one of them twice. Who of the four stood
    in which is not known here: this has the property of the season, and is not its record.
    """
    races = [[int(line[at : at + 2]) for at in range(0, len(line), 2)] for line in _FINISHES.split()]
    if all_drivers:
        short = [race for race in races if len(race) < _STARTERS]
        for at, race in enumerate(short):
            race.append(DRIVERS + at % 4)
    return Rankings.from_lists(races, prompt=[0] * (DRIVERS + 4 * all_drivers))
