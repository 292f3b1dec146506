"""Prose for simulated pages: stable, seeded, in six languages, written for this project.

Promises: the same (seed, key) always gives the same text; different keys give texts that share few word sequences,
so that no duplicate filter takes one page for another; sentences are ordinary enough for a quality filter to keep.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

PLACES = [
    "Aldern",
    "Bresk",
    "Calvora",
    "Dunmere",
    "Eskil",
    "Farrow",
    "Galtby",
    "Hadrin",
    "Ilvesa",
    "Jorund",
    "Kestrel",
    "Lunaro",
    "Mirefeld",
    "Norrby",
    "Ostrava",
    "Pelham",
    "Quarry",
    "Rosmer",
    "Saltby",
    "Tarnow",
    "Ulverton",
    "Varnholt",
    "Wexmoor",
    "Yarrow",
    "Zelten",
    "Ambry",
    "Bolnes",
    "Cresta",
    "Dovrin",
    "Elmet",
]


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A sentence is subject + predicate + tail; `{p}` is a place, `{n}` a number, `{y}` a year."""

    subjects: tuple[str, ...]
    predicates: tuple[str, ...]
    tails: tuple[str, ...]
    joiner: str = " "
    stop: str = "."


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


GRAMMARS: dict[str, _Grammar] = {
    "en": _Grammar(
        _list(
            "The old mill|A retired teacher|The town council|Our neighbour|The river ferry|A careful gardener|The new library|"
            "The harbour master|Her younger brother|The village school|A travelling baker|The museum keeper|The night train|"
            "His grandmother|The school choir|A local farmer|The weather station|The bridge near {p}|The road to {p}|"
            "The market in {p}|A visitor from {p}|The archive of {p}|The orchard beyond {p}|The last shepherd of {p}"
        ),
        _list(
            "was repaired with great patience|kept a record of every storm|has been open since {y}|welcomed {n} guests|"
            "still remembers the long winter|found a letter from {y}|sold bread and honey|planted {n} apple trees|"
            "was painted in a quiet green|waited for the first boat|asked the people of {p} for help|moved closer to {p}|"
            "has written about the birds|lost its roof in {y}|collected {n} wooden tools|could be seen from {p}|"
            "brought news to the valley|was known for its bells|stayed empty for {n} days|taught them to read maps"
        ),
        _list(
            "because the spring had come early|while the children were at school|and nobody in {p} was surprised|"
            "with money that had been saved for years|before the first snow fell on {p}|so that everybody could take part|"
            "although the repair took {n} weeks|and it was the talk of {p} for months|when the wind turned to the north|"
            "as it had been agreed in {y}|after a long talk with the mayor of {p}|which made the work much easier|"
            "and the harvest of {y} was good|until the lamps were lit|because the path to {p} was closed|"
            "and that is how the story began|with the help of {n} volunteers|just as the painter had hoped"
        ),
    ),
    "de": _Grammar(
        _list(
            "Die alte Mühle|Ein früherer Lehrer|Der Gemeinderat|Unser Nachbar|Die kleine Fähre|Eine geduldige Gärtnerin|"
            "Die neue Bücherei|Der Hafenmeister|Ihr jüngerer Bruder|Die Dorfschule|Ein reisender Bäcker|Der Nachtzug|"
            "Seine Großmutter|Der Schulchor|Die Wetterwarte|Die Brücke bei {p}|Die Straße nach {p}|Der Markt von {p}|"
            "Ein Gast aus {p}|Das Archiv von {p}|Der Obstgarten hinter {p}"
        ),
        _list(
            "wurde mit viel Geduld erneuert|ist seit {y} wieder geöffnet|hat {n} Gäste empfangen|erinnert sich an den langen Winter|"
            "fand einen Brief aus {y}|verkaufte Brot und Honig|pflanzte {n} Apfelbäume|wartete auf das erste Boot|"
            "bat die Leute von {p} um Hilfe|schrieb über die Vögel am Fluss|verlor {y} das ganze Dach|sammelte {n} alte Werkzeuge|"
            "war von {p} aus zu sehen|brachte Nachrichten ins Tal|stand {n} Tage lang leer|war für die Glocken bekannt"
        ),
        _list(
            "weil der Frühling früh gekommen war|während die Kinder in der Schule waren|und niemand in {p} war überrascht|"
            "bevor der erste Schnee auf {p} fiel|damit alle daran teilnehmen konnten|obwohl die Arbeit {n} Wochen dauerte|"
            "als der Wind nach Norden drehte|so wie man es {y} vereinbart hatte|nach einem Gespräch mit dem Rat von {p}|"
            "und die Ernte von {y} war gut|bis die Lampen angezündet wurden|und so begann die ganze Geschichte|"
            "mit der Hilfe von {n} Freiwilligen|weil der Weg nach {p} gesperrt war"
        ),
    ),
    "fr": _Grammar(
        _list(
            "Le vieux moulin|Une ancienne institutrice|Le conseil du village|Notre voisin|Le petit bac|Un jardinier patient|"
            "La nouvelle bibliothèque|Le maître du port|Son jeune frère|L'école du bourg|Un boulanger ambulant|Le train de nuit|"
            "Sa grand-mère|La chorale des enfants|La station météo|Le pont près de {p}|La route de {p}|Le marché de {p}|"
            "Un visiteur venu de {p}|Les gens de la vallée de {p}"
        ),
        _list(
            "a retrouvé une lettre de {y}|est ouvert depuis {y}|a reçu {n} personnes|se souvient du long hiver|"
            "vendait du pain et du miel|a planté {n} pommiers|attendait le premier bateau|a demandé de l'aide à {p}|"
            "a écrit sur les oiseaux du fleuve|a perdu son toit en {y}|gardait {n} outils en bois|se voyait depuis {p}|"
            "apportait des nouvelles dans la vallée|est resté vide pendant {n} jours|était connu pour ses cloches"
        ),
        _list(
            "parce que le printemps était venu tôt|pendant que les enfants étaient en classe|et personne à {p} ne fut surpris|"
            "avant que la neige ne tombe sur {p}|pour que tous puissent y prendre part|bien que le travail ait duré {n} semaines|"
            "quand le vent a tourné au nord|comme on l'avait décidé en {y}|après une discussion avec le maire de {p}|"
            "et la récolte de {y} fut bonne|avec l'aide de {n} bénévoles|et c'est ainsi que tout a commencé"
        ),
    ),
    "es": _Grammar(
        _list(
            "El viejo molino|Una maestra jubilada|El consejo del pueblo|Nuestro vecino|La barca del río|Un jardinero paciente|"
            "La nueva biblioteca|El jefe del puerto|Su hermano menor|La escuela del valle|Un panadero ambulante|El tren nocturno|"
            "Su abuela|El coro de los niños|La estación del tiempo|El puente de {p}|El camino de {p}|El mercado de {p}|"
            "Un visitante de {p}|La gente que vive en {p}"
        ),
        _list(
            "encontró una carta de {y}|está abierto desde {y}|recibió a {n} personas|recuerda todavía el largo invierno|"
            "vendía pan y miel|plantó {n} manzanos|esperaba el primer barco|pidió ayuda a los de {p}|"
            "escribió sobre los pájaros del río|perdió el techo en {y}|guardaba {n} herramientas|se veía desde {p}|"
            "llevaba noticias al valle|quedó vacío durante {n} días|era conocido por sus campanas"
        ),
        _list(
            "porque la primavera había llegado pronto|mientras los niños estaban en la escuela|y nadie en {p} se sorprendió|"
            "antes de que cayera la nieve sobre {p}|para que todos pudieran participar|aunque el trabajo duró {n} semanas|"
            "cuando el viento cambió al norte|como se había acordado en {y}|después de hablar con el alcalde de {p}|"
            "y la cosecha de {y} fue buena|con la ayuda de {n} voluntarios|y así empezó toda la historia"
        ),
    ),
    "ru": _Grammar(
        _list(
            "Старая мельница|Бывший учитель|Городской совет|Наш сосед|Речной паром|Терпеливый садовник|Новая библиотека|"
            "Начальник порта|Её младший брат|Сельская школа|Бродячий пекарь|Ночной поезд|Его бабушка|Школьный хор|"
            "Мост у деревни|Дорога через лес|Рынок на площади|Гость из долины"
        ),
        _list(
            "до сих пор помнит долгую зиму|с {y} года открывает двери для всех|за лето принимает {n} гостей|"
            "каждое утро ждёт первую лодку|всегда рассказывает о птицах|бережёт {n} старых инструментов|"
            "хорошо знает историю этих мест|приносит новости в долину|много лет собирает письма|видит реку и дальние холмы"
        ),
        _list(
            "потому что весна пришла рано|пока дети были в школе|и никто в городе не удивился|прежде чем выпал первый снег|"
            "чтобы все могли принять участие|хотя работа заняла {n} недель|когда ветер повернул на север|"
            "как договорились ещё в {y} году|и урожай был хорошим|с помощью {n} добровольцев|так и началась эта история"
        ),
    ),
    "ja": _Grammar(
        _list(
            "古い水車は|町の図書館は|隣の家の先生は|川の渡し船は|村の学校は|港の責任者は|旅のパン屋は|夜の列車は|私の祖母は|山の天文台は|駅前の市場は|小さな博物館は"
        ),
        _list(
            "{y}年に新しく建てられ、|長い冬のことを今でも覚えていて、|毎年{n}人の客を迎えており、|川の鳥について記録を残し、|"
            "{n}本のりんごの木を植えて、|谷に知らせを届けるために、|昔の手紙を大切に保管し、|朝早くから人々を待ちながら、"
        ),
        _list(
            "春が早く来たことを喜んだ|子どもたちと一緒に歌を歌った|町の人々に静かに感謝した|雪が降る前に仕事を終えた|"
            "{n}週間かけて屋根を直した|北の風が吹く日に火を灯した|{y}年の約束を守り続けた|次の祭りの準備を始めた"
        ),
        joiner="",
        stop="。",
    ),
}
LANGUAGES = tuple(GRAMMARS)


def sentences(rng: random.Random, language: str, count: int) -> list[str]:
    """`count` sentences in a language of `LANGUAGES`, drawn from `rng`."""
    grammar = GRAMMARS[language]
    return [_sentence(rng, grammar) for _ in range(count)]


def _sentence(rng: random.Random, grammar: _Grammar) -> str:
    parts = grammar.joiner.join((rng.choice(grammar.subjects), rng.choice(grammar.predicates), rng.choice(grammar.tails)))
    while "{" in parts:
        at = parts.index("{")
        mark = parts[at : at + 3]
        value = rng.choice(PLACES) if mark == "{p}" else str(rng.randint(1700, 2020) if mark == "{y}" else rng.randint(3, 990))
        parts = parts.replace(mark, value, 1)
    return parts + grammar.stop


def paragraphs(seed: int, key: str, language: str, size: int) -> list[str]:
    """Paragraphs of three to six sentences, at least `size` characters in all. Stable in (seed, key, language, size)."""
    rng, out, total = random.Random(f"{seed}/{key}"), list[str](), 0
    gap = "" if GRAMMARS[language].joiner == "" else " "
    while total < size:
        text = gap.join(sentences(rng, language, rng.randint(3, 6)))
        out.append(text)
        total += len(text)
    return out
