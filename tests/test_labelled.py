"""Labelled examples as tasks see them: inference files, Chinese characters, baselines."""

import numpy as np
import pytest

from xling_jax.tasks import ner, nli
from xling_jax.tasks.ner import NamedEntities, Tagged, TaggedWords
from xling_jax.tasks.nli import Inference, NaturalLanguageInference
from xling_jax.tasks.parsing import DependencyParsing, Tree
from xling_jax.tasks.pos import PartsOfSpeech

PAIR = Inference("It rains .", "It is dry .", "contradiction")


@pytest.mark.parametrize(
    "text",
    [
        "It rains .\tIt is dry .\tcontradiction\n",
        "premise\thypo\tlabel\nIt rains .\tIt is dry .\tcontradictory\n",
        "language\tgold_label\tsentence1\tsentence2\nfr\tneutral\tIl\tEt\n"
        "en\tcontradiction\tIt rains .\tIt is dry .\nen\t-\tIt\tAnd\n",
    ],
)
def test_files_of_pairs_are_read_with_and_without_names_of_columns(tmp_path, text):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    assert nli.read(path, "en") == [PAIR]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\tneutral\na\tb\tmaybe\n", "line 2: 'maybe' is none of contradiction"),
        ("a\tb\n", "line 1: 2 columns between tabs, and not 3: premise, hypothesis, label"),
        ("a\tb\tneutral\tx\n", "line 1: 4 columns"),
        ("hypothesis\tx\tlabel\tpremise\na\tb\tneutral\n", "line 2: 3 columns .* not 4"),
        ("a\tb\tneutral\n\t b\tneutral\n", "line 2: the premise is empty"),
        ("a\t \tneutral\n", "line 1: the hypothesis is empty"),
        ("premise\thypo\tlabel\tgold_label\na\tb\tneutral\t-\n", "line 1: .* label is there twice"),
        ("premise\tsentence1\thypo\tlabel\n", "line 1: the column premise is there twice"),
        ("premise\thypothesis\tlabel\n", "has no pairs"),
        ("a\tb\t-\n", "has no pairs"),
    ],
)
def test_what_is_no_pair_is_named(tmp_path, text, message):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        nli.read(path)


def test_characters_become_a_segmenters_words_and_tags_come_back():
    text, tags = "我爱北京天安门", ["O", "O", "B-LOC", "I-LOC", "I-LOC", "I-LOC", "I-LOC"]
    item = ner.segmented(Tagged(list(text), tags))
    assert "".join(item.words) == text and sum(item.sizes) == len(text)
    assert len(item.words) < len(text)
    words, conflicts = ner.of_words(item)
    assert conflicts == 0 and ner.of_parts(words, item.sizes) == tags


def test_parts_of_a_word_that_disagree_are_counted_and_the_first_decides():
    item = TaggedWords(Tagged(list("abcd"), ["O", "B-LOC", "B-PER", "I-PER"]), ["ab", "cd"], [2, 2])
    assert ner.of_words(item) == (["O", "B-PER"], 1)
    assert NamedEntities().counted([item]) == {"conflicts": 1.0}


def test_entities_of_a_segmenters_words_count_and_those_of_characters_beside_them():
    gold = Tagged(list("abcde"), ["O", "B-LOC", "B-PER", "I-PER", "O"])
    items = [TaggedWords(gold, ["ab", "cd", "e"], [2, 2, 1])]
    labels = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    found = NamedEntities().scores(items, [(np.array([0, 3, 0]),)], labels)
    words = {"precision": 1.0, "recall": 1.0, "f1": 1.0}  # the place begins within a word
    characters = {"precision": 1.0, "recall": 0.5, "f1": 2 / 3}
    assert found == pytest.approx(words | {f"character_{x}": y for x, y in characters.items()})
    whole = NamedEntities().scores([ner.whole(gold)], [(np.array([0, 1, 3, 4, 0]),)], labels)
    assert whole == words
    known = NamedEntities().baselines(items, items)
    assert known["majority"] == pytest.approx(0.5)  # B-PER for every word: 1 of 3 found, 1 of 1


def test_words_in_other_scripts_stay_apart_in_chinese_text():
    tags = "O B-PER I-PER O B-PER O O".split()
    item = ner.segmented(Tagged("由 Tim Burton 与 Madonna 2008 12".split(), tags))
    assert item.words == item.gold.words  # not TimBurton, nor Madonna200812
    letters = ner.segmented(Tagged(list("由Tim与"), ["O", "B-PER", "I-PER", "I-PER", "O"]))
    assert letters.words == ["由", "Tim", "与"]  # PAN-X has letters apart


def test_chinese_words_of_a_file_are_not_segmented_again(tmp_path):
    (tmp_path / "zh.tsv").write_text("中国\tB-GPE\n共产党\tO\n\n北\tO\n京\tO\n")
    read = NamedEntities().read(str(tmp_path / "zh.tsv"), "zh")
    assert [item.words for item in read] == [["中国", "共产党"], ["北", "京"]]


def test_a_file_with_blanks_in_its_words_keeps_them():
    item = ner.segmented(Tagged(["北 京", "市"], ["B-LOC", "I-LOC"]))
    assert item.words == ["北 京", "市"] and item.sizes == [1, 1]


def test_baselines_of_pairs_are_the_most_frequent_label_and_its_chance():
    known = [Inference("a", "b", label) for label in ["neutral"] * 3 + ["entailment"]]
    items = [Inference("a", "b", label) for label in ["neutral", "entailment"]]
    found = NaturalLanguageInference().baselines(known, items)
    assert found == {"majority": 0.5, "chance": pytest.approx(0.5 * 0.75 + 0.5 * 0.25)}


def test_the_constant_tag_that_does_best_is_a_baseline_of_entities():
    tagged = Tagged(["Rome", "Oslo"], ["B-LOC", "B-LOC"])
    items = [TaggedWords(tagged, tagged.words, [1, 1])] * 4
    assert NamedEntities().baselines(items, items) == {"majority": 1.0, "chance": 1.0}


def test_the_most_frequent_distance_and_relation_are_a_baseline_of_trees():
    tree = Tree(["a", "b", "c"], [2, 3, 0], ["det", "det:x", "root"], ["DET", "DET", "NOUN"])
    found = DependencyParsing().baselines([tree], [tree])
    assert found["majority"] == pytest.approx(2 / 3)
    assert DependencyParsing(subtypes=True).baselines([tree], [tree])["majority"] < 0.5
    lone = Tree(["a"], [0], ["root"], ["NOUN"])
    assert DependencyParsing().baselines([lone], [lone])["majority"] == 0


def test_parts_of_speech_are_scored_by_word():
    trees = [
        Tree(["a", "b"], [2, 0], ["det", "root"], ["DET", "NOUN"]),
        Tree(["c"], [0], ["root"], ["NOUN"]),
    ]
    task = PartsOfSpeech()
    labels = task.labels(trees)
    assert labels == ("DET", "NOUN")
    assert [x.tolist() for x in task.targets(trees, labels)] == [[[0], [1]], [[1]]]
    scores = task.scores(trees, [(np.array([0, 0]),), (np.array([1]),)], labels)
    assert scores == {"accuracy": pytest.approx(2 / 3)}
    assert task.baselines(trees, trees[:1]) == {"majority": 0.5, "chance": pytest.approx(0.5)}


def test_parts_of_speech_need_no_trees(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text("1\ta\ta\tDET\t_\t_\t_\t_\t_\t_\n2\tb\tb\tNOUN\t_\t_\t_\t_\t_\t_\n")
    (found,) = PartsOfSpeech().read(str(path), "en")
    assert (found.words, found.tags) == (["a", "b"], ["DET", "NOUN"])
    with pytest.raises(ValueError, match="the head '_': give the number of a word"):
        DependencyParsing().read(str(path), "en")


def test_words_without_a_part_of_speech_are_named(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text("1\ta\ta\t_\t_\t_\t0\troot\t_\t_\n")
    with pytest.raises(ValueError, match=r"a\.conllu, sentence 1: 'a' has no part of speech"):
        PartsOfSpeech().read(str(path), "en")


def test_trees_of_highest_score_are_scored():
    tree = Tree(["a", "b"], [2, 0], ["det", "root"], ["DET", "NOUN"])
    task, arcs = DependencyParsing(), np.array([[0.0, 0.0, 9.0], [5.0, 4.0, 0.0]])
    labels = task.labels([tree])
    assert labels == ("det", "root")
    relations = np.array([[0, 0, 0], [1, 1, 1]])
    assert task.scores([tree], [(arcs, relations)], labels) == {"uas": 1.0, "las": 1.0}
    wrong = task.scores([tree], [(arcs, 1 - relations)], labels)
    assert wrong == {"uas": 1.0, "las": 0.0}
