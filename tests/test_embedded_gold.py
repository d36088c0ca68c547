"""Trees, names and inference pairs of the embedded languages are well-formed and say the truth."""

import collections
import functools
import itertools

import pytest

from xling_jax.corpora.embedded import inference
from xling_jax.corpora.embedded.config import EMBEDDED, LanguageConfig, SecondConfig
from xling_jax.corpora.embedded.grammar import Constituent
from xling_jax.corpora.embedded.inference import Edits, is_plain
from xling_jax.corpora.embedded.language import Pair
from xling_jax.tasks.ner import NamedEntities, half_of_names

CONFIG = LanguageConfig(word_types=600)
SECONDS = {
    **{name: second for name, second in EMBEDDED.items() if name != "en"},
    "sov": SecondConfig(0.05, "cyrillic", "sov", "after", morphology="rich", articles=False),
    "vso": SecondConfig(order="vso", adpositions="after", adjectives="after", morphology="rich"),
    "inverted": SecondConfig(anchors=1.0, inverted=True),
}


@functools.cache
def pair(name):
    return Pair(CONFIG, SECONDS[name])


@functools.cache
def language(name):
    return pair("near").languages[0] if name == "first" else pair(name).languages[1]


@functools.cache
def derivations(count):
    return list(itertools.islice(language("first").derivations(1), count))


@functools.cache
def examples(number=1500, seed=1):
    return inference.pairs(pair("far"), number, seed)


every_language = pytest.mark.parametrize("name", ["first", *SECONDS])


# Trees.


@every_language
def test_conllu_is_well_formed(name):
    for derivation in derivations(500):
        comment, *rows, blank = language(name).conllu(derivation)
        assert comment == "# text = " + language(name).text(derivation)
        assert blank == ""
        columns = [row.split("\t") for row in rows]
        assert all(len(row) == 10 and all(row) for row in columns)
        assert [row[0] for row in columns] == [str(i) for i in range(1, len(rows) + 1)]
        assert " ".join(row[1] for row in columns) == language(name).text(derivation)
        heads = [int(row[6]) for row in columns]
        assert heads.count(0) == 1 and max(heads) <= len(rows)
        assert [row[7] for row in columns if row[6] == "0"] == ["root"]
        for start in range(len(rows)):
            path = [start + 1]
            while heads[path[-1] - 1]:
                path.append(heads[path[-1] - 1])
                assert len(path) == len(set(path))
        for row in columns:
            features = [] if row[5] == "_" else row[5].split("|")
            assert features == sorted(features)
            assert all(feature.count("=") == 1 for feature in features)
            assert (row[3] == "PUNCT") == (row[1] in {".", "?", ","}) == (row[7] == "punct")


@every_language
def test_trees_are_projective(name):
    for derivation in derivations(200):
        rows = language(name).conllu(derivation)[1:-1]
        heads = [int(row.split("\t")[6]) for row in rows]
        arcs = [tuple(sorted(arc)) for arc in enumerate(heads, 1)]
        for (a, b), (c, d) in itertools.combinations(arcs, 2):
            assert not (a < c < b < d or c < a < d < b)


def test_translations_have_the_same_relations_between_the_same_lemmas():
    def relations(lang, derivation):
        """Relation, dependent and head of content words."""
        return {
            (word.constituent.relation, word.constituent.concept, word.head.concept)
            for word in lang.words(derivation)
            if word.head and word.constituent in derivation.nodes()
        }

    for derivation in derivations(200):
        here, there = (relations(language(name), derivation) for name in ("first", "vso"))
        assert here == there


def test_lemmas_are_dictionary_forms():
    lang = language("middle")
    known = {forms[""] for forms in lang.lexicon.forms}
    inflected = 0
    for derivation in derivations(100):
        for row in lang.conllu(derivation)[1:-1]:
            _, form, lemma, *_ = row.split("\t")
            assert lemma in known
            inflected += form != lemma
    assert inflected > 100


# Names.


@every_language
def test_tags_are_well_formed_and_every_name_is_one_span(name):
    seen = collections.Counter()
    for derivation in derivations(2000):
        tokens, tags = language(name).tagged(derivation)
        assert " ".join(tokens) == language(name).text(derivation)
        for last, tag in itertools.pairwise(["O", *tags]):
            assert not tag.startswith("I-") or last[2:] == tag[2:]
        names = [node.entity for node in derivation.nodes() if node.entity]
        spans = [tag[2:] for tag in tags if tag.startswith("B-")]
        assert sorted(names) == sorted(spans)
        seen.update(tags)
    assert set(seen) == {"O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC"}
    assert min(seen.values()) > 20


def names_of(item):
    pairs = zip(item.words, item.gold.tags, strict=True)
    return {word for word, tag in pairs if tag != "O"}


def test_names_of_the_test_may_be_new():
    seen = collections.defaultdict(set)
    for part in ("train", "dev", "test"):
        made = NamedEntities(new_names=True).make(pair("far"), 400, part)
        for item in itertools.chain(*made):
            assert names_of(item)
            seen[part == "train"] |= names_of(item)
        tags = collections.Counter(tag for item in made[0] for tag in item.gold.tags)
        assert min(tags["B-PER"], tags["B-LOC"], tags["B-ORG"]) > 20
    assert min(map(len, seen.values())) > 40 and seen[True].isdisjoint(seen[False])
    frequency = collections.Counter()
    first = language("first")
    for of_training in (True, False):
        for name in half_of_names(first, of_training):
            kind = "surnames" if name.meaning == "surname" else "nouns"
            frequency[name.meaning, of_training] += first.concepts.frequency[kind][name.row]
    for kind in ("person", "place", "group", "surname"):
        assert 0.8 < frequency[kind, True] / frequency[kind, False] < 1.25
    usual, _ = NamedEntities().make(pair("far"), 400, "test")
    assert not all(map(names_of, usual))


# Inference pairs.


def test_labels_are_equally_frequent_and_pairs_come_out_the_same_again():
    found = examples()
    assert collections.Counter(e.label for e in found) == dict.fromkeys(inference.LABELS, 500)
    assert inference.pairs(pair("far"), 100, 1) == found[:100]
    assert len({(e.premise, e.hypothesis) for e in found}) > 0.99 * len(found)
    other = inference.pairs(pair("far"), 100, 2)
    # Short sentences recur.
    assert len({e.premise for e in other} & {e.premise for e in found}) < 5


def test_pairs_may_be_of_few_words():
    short = inference.pairs(pair("far"), 99, 1, most_words=20)
    words = [len(f"{e.premise[0]} {e.hypothesis[0]}".split()) for e in short]
    assert max(words) == 20 and collections.Counter(e.label for e in short)["neutral"] == 33
    with pytest.raises(ValueError, match="raise most_words=2, or adjuncts"):
        inference.pairs(pair("far"), 1, 1, most_words=2)


def test_a_hypothesis_is_another_sentence_than_its_premise_in_both_languages():
    for example in examples():
        assert all(a != b for a, b in zip(example.premise, example.hypothesis, strict=True))


def test_the_second_language_changes_nothing_in_the_pairs_of_the_first():
    near = inference.pairs(pair("near"), 100, 1)
    for one, other in zip(near, examples(), strict=False):
        assert (one.premise[0], one.hypothesis[0], one.label) == (
            other.premise[0],
            other.hypothesis[0],
            other.label,
        )
        assert one.hypothesis[1] != other.hypothesis[1]


def test_negation_hints_at_the_label_and_length_does_not():
    for label in inference.LABELS:
        of_label = [e for e in examples() if e.label == label]
        texts = [e.hypothesis[0].split() for e in of_label]
        negated = sum("not" in words for words in texts) / len(texts)
        # Subordinate clauses are negated in addition, with all labels alike.
        assert negated == pytest.approx(inference.NEGATED[label] + 0.03, abs=0.06), label
        for sentences in (texts, [e.premise[0].split() for e in of_label]):
            assert sum(map(len, sentences)) / len(sentences) == pytest.approx(12, abs=1.2), label
    chances = collections.defaultdict(collections.Counter)  # of the labels, by what is negated
    for (label, hypothesis), ways in inference.WAYS.items():
        share = inference.NEGATED[label]
        for premise, _ in ways:
            chance = (share if hypothesis else 1 - share) / len(ways) / 3
            chances[hypothesis][label] += chance
            chances[hypothesis, premise][label] += chance
    best = {seen: max(counts.values()) for seen, counts in chances.items()}
    assert best[True] + best[False] == pytest.approx(0.53, abs=0.01)
    both = sum(value for seen, value in best.items() if isinstance(seen, tuple))
    assert both == pytest.approx(0.62, abs=0.01)


@pytest.mark.parametrize(
    ("replaced", "least", "most"), [(0.0, 0.8, 0.95), (0.7, 0.4, 0.6), (1.0, 0.33, 0.5)]
)
def test_words_in_common_and_negation_tell_the_label_unless_a_word_is_replaced(
    replaced, least, most
):
    """The share of labels that a table of these can guess."""
    seen = collections.defaultdict(collections.Counter)
    forms = language("first").lexicon.forms
    function = language("first").concepts.function
    helps = {word for name in ("do", "not") for word in forms[function[name].index].values()}
    found = inference.pairs(pair("far"), 1500, 1, 16, replaced)
    for example in found:
        sides = example.premise[0].split(), example.hypothesis[0].split()
        counts = [collections.Counter(w for w in side if w not in helps) for side in sides]
        apart = (counts[1] - counts[0]).total(), (counts[0] - counts[1]).total()
        key = (*(min(number, 4) for number in apart), *("not" in side for side in sides))
        seen[key][example.label] += 1
    right = sum(max(labels.values()) for labels in seen.values())
    assert least < right / len(found) < most


@pytest.mark.parametrize("has_general", [False, True])
def test_antonyms_are_mutual_and_of_one_class(has_general):
    lang = language("first")
    edits = Edits(lang, lang.deriver(1), has_general)
    antonyms = edits.antonyms
    assert antonyms == Edits(lang, lang.deriver(2), has_general).antonyms
    assert not {word.index for word in edits.general.values()} & antonyms.keys()
    assert all((word.category, word.meaning) == of for of, word in edits.general.items())
    concepts = {concept.index: concept for concept in lang.concepts.all()}
    for index, antonym in antonyms.items():
        assert antonyms[antonym.index] is concepts[index] is not antonym
        assert (antonym.category, antonym.meaning) == (
            concepts[index].category,
            concepts[index].meaning,
        )
    every = len(lang.concepts.verbs) + len(lang.concepts.adjectives)
    assert len(antonyms) > (0.75 if has_general else 0.85) * every


def judge(possible):
    """The label of premise and hypothesis, from the truth values that both may have together."""
    hypotheses = {hypothesis for premise, hypothesis in possible if premise}
    if len(hypotheses) == 2:
        return "neutral"
    return "entailment" if True in hypotheses else "contradiction"


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("label", inference.LABELS)
def test_labels_are_those_of_logic(label, negated):
    # Truth values that the premise and the edited sentence, both positive, may have together.
    everything = set(itertools.product((True, False), repeat=2))
    possible = {
        "keep": {(True, True), (False, False)},
        "weaken": everything - {(True, False)},
        "strengthen": everything - {(False, True)},
        "oppose": everything - {(True, True)},
        "generalize": everything - {(True, False)},
        "replace": everything,
        "unrelated": everything,
    }
    ways = [*inference.WAYS[label, negated], *inference.REPLACED[label, negated]]
    for premise_negated, edits in ways:
        for edit in edits:
            stated = {(a != premise_negated, b != negated) for a, b in possible[edit]}
            assert judge(stated) == label, (edit, premise_negated)


def conditions(root: Constituent) -> frozenset[tuple]:
    """What a positive main clause says: who does what to whom, and each circumstance."""
    roles = {"obl:agent": "nsubj", "nsubj:pass": "obj"} if "Voice" in root.features else {}
    found = {("event", root.concept.index)}
    for child in root.children:
        relation = roles.get(child.relation, child.relation)
        if relation in ("aux", "conj", "advcl") or "Tense" in child.features:
            continue
        found.add((relation, child.concept.index))
        for below in child.children:
            is_agent = below.relation == "case" and relation == "nsubj"
            if not is_agent and below.relation in ("case", "amod", "nmod", "acl:relcl", "conj"):
                found.add((relation, child.concept.index, below.relation, below.concept.index))
    return frozenset(found)


@pytest.mark.parametrize("positive", [True, False])
def test_edits_change_what_is_said_as_they_promise(positive):
    lang = language("first")
    deriver = lang.deriver(3)
    edits = Edits(lang, deriver, has_general=True)
    general = {word.index for word in edits.general.values()}
    seen = collections.Counter()
    for _ in range(3000):
        premise = deriver.sentence()
        if not is_plain(premise):
            continue
        before = conditions(premise)
        for name in ("drop_clause", "turn_voice"):
            changed = premise.copy()
            if getattr(edits, name)(changed):
                assert conditions(changed) == before
                assert lang.text(changed) != lang.text(premise)
                seen[name] += 1
        for name in ("weaken", "strengthen", "oppose", "replace", "generalize"):
            changed = premise.copy()
            if getattr(edits, name)(changed, positive):
                after = conditions(changed)
                if name == "weaken":
                    assert after <= before
                elif name == "strengthen":
                    assert after > before
                elif name == "oppose":
                    assert ("event", edits.antonyms[premise.concept.index].index) in after
                else:
                    assert not after <= before and not after >= before
                    new = {of[1] for of in after} - {of[1] for of in before}
                    assert new <= general if name == "generalize" else not new & general
                seen[name] += 1
        assert conditions(premise) == before
    assert len(seen) == 7 and min(seen.values()) > 30


def test_too_little_grammar_and_bad_numbers_raise():
    with pytest.raises(ValueError, match="number=0"):
        inference.pairs(pair("far"), 0, 1)
    with pytest.raises(ValueError, match="seed=-1"):
        inference.pairs(pair("far"), 1, -1)
