"""What a workdir holds of an experiment: fingerprints, and workdirs that must not be mixed."""

import contextlib
import itertools
import json
import os
import re

import pytest
from ml_collections import ConfigDict
from small_run import ROOT, config_of

from xling_jax import errors
from xling_jax.corpora.embedded.config import LanguageConfig, SecondConfig
from xling_jax.experiments.zero_shot.fields import is_used
from xling_jax.experiments.zero_shot.jobs import jobs
from xling_jax.records import Identity
from xling_jax.runs import config_files, results, store
from xling_jax.tasks import TASKS
from xling_jax.training.metrics import MetricsFile

ROWS = {"0": "original"}
TEXTS = [{"source": "a.txt", "language": "en", "sha256": "1" * 64}]


def config(**changes):
    made = ConfigDict(
        {
            "name": "fake_english",
            "scale": "laptop",
            "row": "0",
            "rows": {},
            "sets": {},
            "seeds": (0,),
            "training": {"epochs": 2, "steps_per_call": 10, "save_every": 0},
            "batches": {"row_lengths": (24, 40)},
            "devices": {"cpu": 0},
        }
    )
    made.update_from_flattened_dict(changes)
    return made


def described(texts=TEXTS, rows=ROWS, **changes):
    return store.describe(config(**changes), texts, rows)


def train(workdir):
    """What a run of the stored experiment leaves behind."""
    identity = Identity.of(json.loads((workdir / "config.json").read_text()))
    ended = results.Replica("e", "0", "", 0, 1, {"mu": 0.5}, fingerprint=identity.fingerprint)
    results.write_results(workdir / "results.json", [ended])
    MetricsFile(workdir / "metrics.jsonl", identity).write(
        kind="train", row="0", seed=0, step=1, loss=1.0
    )


def begun(workdir, before, now):
    """What `now` finds where `before` has trained."""
    store.write(workdir, before)
    train(workdir)
    return store.begun(workdir, now)


def test_the_same_experiment_finds_what_it_stored(tmp_path):
    first = described() | {"groups": [[["0", 0]]]}
    assert store.begun(tmp_path, first) is None
    store.write(tmp_path, first)
    train(tmp_path)
    again = store.begun(tmp_path, described() | {"groups": []})
    assert again == json.loads((tmp_path / "config.json").read_text())
    assert again["groups"] == [[["0", 0]]] and again["versions"]["jax"]


def test_versions_that_a_run_goes_on_with_stand_beside_those_it_began_with(tmp_path):
    first, later = (described() | {"versions": {"jax": version}} for version in ("1", "2"))
    store.write(tmp_path, first)
    train(tmp_path)
    for new, expected in ((first, []), (later, [{"jax": "2"}]), (later, [{"jax": "2"}])):
        found = store.begun(tmp_path, new)
        assert found and found["versions"] == {"jax": "1"}
        store.go_on(found, new["versions"])
        assert found["later_versions"] == expected
        store.write(tmp_path, found)


@pytest.mark.parametrize(
    ("name", "then", "other"),
    [
        ("nli.most_words", TASKS["nli"]().most_words, 16),
        ("nli.replaced", TASKS["nli"]().replaced, 0.7),
        ("settings.nli.embeddings", True, False),
        ("ner.new_names", TASKS["ner"]().new_names, True),
        ("corpora.near.second.modifiers", SecondConfig().modifiers, "before"),
        ("corpora.synthetic.name_types", LanguageConfig().name_types, 0.4),
        ("every_row", "", "random-inside"),
    ],
)
def test_a_field_that_older_configs_lack_has_the_value_that_they_stand_for(
    tmp_path, name, then, other
):
    old = described()
    store.write(tmp_path, old)
    train(tmp_path)
    new = []
    for value in (then, other):
        made, field = config(), value
        for part in reversed(name.split(".")):
            field = {part: field}
        made.update(field)
        new.append(store.describe(made, TEXTS, ROWS))
    assert new[0]["fingerprint"] == old["fingerprint"] != new[1]["fingerprint"]
    assert store.begun(tmp_path, new[0])
    shown = then if then != "" else "nothing"
    with pytest.raises(ValueError, match=f"  {re.escape(name)}: {shown} there, {other} now"):
        store.begun(tmp_path, new[1])


def zero_shot(options, **changes):
    made = config_of(ROOT / "configs" / "zero_shot.py", f"row=default,{options}", {})
    with made.ignore_type():
        made.update_from_flattened_dict(changes)
    return store.describe(made, [], {job.name: job.row.description for job in jobs(made)})


NER = {"texts.ner.en.train": "a.conll", "settings.ner.epochs": 2}
PARSING = {"texts.parsing.en.train": "a.conllu", "settings.parsing.epochs": 2}
OWN = "texts_of_pair.en_fr.{}.en.train"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("pair=en-near", {}), ("pair=en-far", {})),
        (("pair=en-fr", {}), ("pair=fr-en", {})),
        (("pair=en-near,task=nli", {}), ("pair=en-near,task=pos", {})),
        (("pair=en-fr,task=ner", NER), ("pair=en-fr,task=parsing", PARSING)),
        (("pair=en-fr", {}), ("pair=en-fr+en-de", {})),
        (("pair=en-de", {}), ("pair=en-fr+en-de", {OWN.format("ner"): "x"})),
        (
            ("pair=en-fr", {OWN.format("ner"): "x"}),
            ("pair=en-zh", {"texts_of_pair.en_zh.ner.en.train": "y"}),
        ),
        (
            ("pair=en-fr+en-de,task=ner", {}),
            ("pair=en-fr+en-de,task=nli", {OWN.format("nli"): "x"}),
        ),
    ],
)
def test_pairs_and_tasks_are_added_as_rows_are(tmp_path, first, second):
    first, second = (zero_shot(options, **changes) for options, changes in (first, second))
    for number, (before, now) in enumerate([(first, second), (second, first)]):
        found = begun(tmp_path / str(number), before, now)
        for grown in (found, store.merged({"a": before, "b": now})):
            assert grown["rows"] == {**before["rows"], **now["rows"]}
            runs = [each["config"]["runs"] for each in (before, now)]
            assert grown["config"]["runs"] == runs[0] | runs[1]
            known = config_files.flatten(grown["config"])
            for each in (before, now):
                for name, value in config_files.flatten(each["config"]).items():
                    if any(is_used(row, "", name) for row in each["rows"]) and "." in name:
                        assert known.get(name, "") == value, name
            own = grown["config"], grown["texts"], grown["rows"]
            assert grown["fingerprint"] == store.fingerprint(*own)
        store.write(tmp_path / str(number), found)
        again = store.begun(tmp_path / str(number), now)
        own = {again["fingerprint"], *again["earlier_fingerprints"]}
        assert again["fingerprint"] == found["fingerprint"]
        assert own == {found["fingerprint"], before["fingerprint"]}
    tasks = [*first["config"]["tasks"], *second["config"]["tasks"]]
    assert store.merged({"a": first, "b": second})["config"]["tasks"] == list(dict.fromkeys(tasks))


def refused(tmp_path, before, now, message):
    """Whichever came first, and gathered too."""
    for number, both in enumerate([(before, now), (now, before)]):
        with pytest.raises(ValueError, match=message):
            begun(tmp_path / str(number), *both)
        with pytest.raises(ValueError, match=message):
            store.merged(dict(zip("ab", both, strict=True)))


@pytest.mark.parametrize("name", ["texts.ner.en.train", "settings.ner.epochs", OWN.format("ner")])
def test_what_rows_of_both_read_must_be_the_same(tmp_path, name):
    now = zero_shot("pair=en-fr+en-de", **{name: 7 if "epochs" in name else "other.conll"})
    only = rf"What differs:\n  {re.escape(name)}: [^\n]*\n\w"
    refused(tmp_path, zero_shot("pair=en-fr"), now, only)


def test_a_field_that_one_config_lacks_is_no_other_rows(tmp_path):
    old, new = (zero_shot("pair=en-near", **{"settings.ner.select": "last"}) for _ in range(2))
    del old["config"]["settings"]["ner"]["select"]
    refused(tmp_path, old, new, r"settings\.ner\.select: (None|last) ")


def bilingual(rows, **changes):
    made = config_of(ROOT / "configs" / "bilingual.py", "pair=en-fr", {"every_row": "", **changes})
    return store.describe(made, [], {name: made.rows[name] for name in rows.split("+")})


@pytest.mark.parametrize(
    ("name", "value", "used", "unused"),
    [
        ("corpora.fr.dictionary", "en-fr.txt", "extra_anchors", "default+sep_emb+wiki_cc"),
        ("code_switch.probability", 0.9, "extra_anchors", "default+sep_emb+wiki_cc"),
        ("corpora.fr.other", "cc.txt", "wiki_cc", "default+sep_emb+extra_anchors"),
        ("corpora.fr.other_domain", 0.5, "wiki_cc", "default+sep_emb+extra_anchors"),
        ("vocabulary.joint_size", 77, "default+en_fr+wiki_cc", "no_anchors+sep_l1_3+sep_emb"),
    ],
)
def test_bilingual_rows_are_added_with_what_they_alone_use(tmp_path, name, value, used, unused):
    few, more = bilingual(unused), bilingual(used, **{name: value})
    for number, (before, now) in enumerate([(few, more), (more, few)]):
        found = begun(tmp_path / str(number), before, now)
        assert config_files.flatten(found["config"])[name] == value
        assert found["rows"] == before["rows"] | now["rows"]
    message = rf"What differs:\n  {re.escape(name)}: [^\n]*\n\w"
    for row in used.split("+"):
        refused(tmp_path / row, bilingual(f"{row}+{unused}"), more, message)


def test_what_every_row_has_is_of_every_row(tmp_path):
    every, name = {"every_row": "extra-anchors"}, {"corpora.fr.dictionary": "en-fr.txt"}
    both = bilingual("default", **every), bilingual("wiki_cc", **every, **name)
    refused(tmp_path, *both, r"What differs:\n  corpora\.fr\.dictionary: ")


def test_a_row_is_the_same_in_every_pair(tmp_path):
    mine = {"rows.default": "default;first[2]"}
    refused(tmp_path, zero_shot("pair=en-near"), zero_shot("pair=en-far", **mine), "row default: ")
    fr, de = (
        zero_shot(f"pair={pair},models=m/default")
        | {"texts": [{"source": f"{pair}/M_seed0/en/x", "language": "en", "field": "pretrained",
                      "sha256": pair}]}
        for pair in ("en-fr", "en-de")
    )  # fmt: skip
    refused(tmp_path / "given", fr, de, r"the content of en-\w\w/M_seed0/en/x")


@pytest.mark.parametrize(
    ("folder", "is_refused"), [("m/default", True), ("m{seed}/default", False)]
)
def test_a_folder_without_a_seed_is_one_model_for_all_seeds(tmp_path, folder, is_refused):
    first, second = (
        zero_shot(f"pair=en-fr,models={folder},seeds={seed}")
        | {"texts": [{"source": f"en-fr/default_seed{seed}/en/x", "language": "en", "sha256": seed,
                      "field": "pretrained"}]}
        for seed in "01"
    )  # fmt: skip
    if is_refused:
        refused(tmp_path, first, second, r"the content of en-fr/default_seed\d/en/x")
    else:
        assert begun(tmp_path, first, second)


def test_fields_without_effect_on_the_numbers_may_change(tmp_path):
    changes = {"training.steps_per_call": 99, "training.save_every": 7, "devices.cpu": 2}
    found = begun(tmp_path, described(), described(**changes))
    assert found and found["config"]["training"]["steps_per_call"] == 99  # as it is run now


def test_what_is_measured_may_change_until_something_was(tmp_path):
    made, more = ({"evaluators": {"names": names}} for names in (("mrr",), ("mrr", "cka")))
    first, wanted = (
        store.describe(ConfigDict(config().to_dict() | each), TEXTS, ROWS) for each in (made, more)
    )
    store.write(tmp_path, first)
    found = store.begun(tmp_path, wanted)
    assert found
    store.write(tmp_path, found)
    train(tmp_path)
    assert store.begun(tmp_path, wanted)
    with pytest.raises(
        ValueError, match=r"evaluators\.names: .* mrr, cka is measured, and mrr would"
    ):
        store.begun(tmp_path, first)


def test_another_config_is_refused_naming_what_differs(tmp_path):
    now = described(rows={"8": "lang-pos", "0": "mine"}, **{"training.epochs": 3, "row": "8"})
    with pytest.raises(ValueError) as error:
        begun(tmp_path, described(), now)
    message = str(error.value)
    assert "training.epochs: 2 there, 3 now" in message
    assert "row 0: original there, mine now" in message and "row 8" not in message
    assert "row_lengths" not in message and "--workdir" in message


def test_rows_seeds_and_their_texts_are_added(tmp_path):
    first = described() | {"groups": [[["0", 0]]]}
    more = [{"source": "b.txt", "language": "fr", "sha256": "2" * 64}]
    found = begun(tmp_path, first, described(more, {"8": "lang-pos"}, row="8", seeds=(0, 1)))
    assert found["rows"] == {"0": "original", "8": "lang-pos"}
    assert found["texts"] == TEXTS + more and found["groups"] == [[["0", 0]]]
    assert found["fingerprint"] != first["fingerprint"]
    assert found["config"]["seeds"] == [0, 1] and found["config"]["row"] == "8"


@pytest.mark.parametrize("name", ["fake_english", "real_xnli"])
def test_how_neighbours_are_found_binds_only_rows_that_need_them(tmp_path, name):
    def sampled(sample, **rows):
        made = config(name=name)
        made.vocabulary = {"neighbours": {"skip_gram": {"sample": sample}}}
        return store.describe(made, TEXTS, rows)

    def sample(run):
        return run["config"]["vocabulary"]["neighbours"]["skip_gram"]["sample"]

    without, needed = sampled(1e-4, a="original"), sampled(1e-3, b="lang-pos;knn-replace")
    assert sample(begun(tmp_path, without, needed)) == 1e-3
    for runs in ((without, needed), (needed, without)):
        assert sample(store.merged(dict(zip("xy", runs, strict=True)))) == 1e-3
    other = sampled(1e-4, c="knn-replace-as-published")
    with pytest.raises(ValueError, match="neighbours.skip_gram.sample: 0.001 in x, 0.0001 in y"):
        store.merged({"x": needed, "y": other})

    def of_every_row(run):
        return store.fingerprint_of_every_row(name, run["config"])

    assert of_every_row(without) == of_every_row(needed)  # so both can be fine-tuned in one folder
    longer = needed["config"] | {"training": {"epochs": 1000}}
    assert of_every_row(without) != store.fingerprint_of_every_row(name, longer)


def contents(workdir):
    return {path.name: path.read_bytes() for path in workdir.iterdir() if path.is_file()}


def remove(path):
    path.unlink()


def a_link_to_nothing(path):
    path.unlink()
    path.symlink_to("nothing")


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def changed(path):
    path.write_bytes(path.read_bytes().replace(b'"0"', b'"1"'))


def of(text):
    def write(path):
        path.write_text(text)

    return write


DAMAGES = [
    remove, a_link_to_nothing, a_folder, a_pipe, half, changed, *map(of, (
        "", "{}", "[]", "null", "[[]]", '{"config": []}', '{"rows": {"0": 1}}', "[" * 100_000,
        '{"fingerprint": "0", "config": {}, "rows": {}, "texts": [1]}', '{"groups": [["0"]]}',
        '{"steps": {"0": "x"}}', '{"kind": "train", "row": "0", "seed": "x", "step": 1}\n\n',
        '{"kind": "evaluation", "row": "0", "seed": 0, "step": 1, "metrics": [1]}\n',
        '[{"experiment": "e"}]', "\x00\n",
    ))
]  # fmt: skip


@pytest.mark.parametrize("name", ["config.json", "results.json", "metrics.jsonl"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_refused_or_harmless_and_stays_as_it_is(tmp_path, name, damage):
    new = described()
    store.write(tmp_path, new)
    train(tmp_path)
    whole = (
        results.read_results(tmp_path / "results.json"),
        results.read_metrics(tmp_path / "metrics.jsonl"),
    )
    damage(tmp_path / name)
    before = contents(tmp_path)
    try:
        assert store.begun(tmp_path, new)["config"] == json.loads(json.dumps(new["config"]))
        found = (
            results.read_results(tmp_path / "results.json"),
            results.read_metrics(tmp_path / "metrics.jsonl"),
        )
        lost = {"results.json": ([], whole[1]), "metrics.jsonl": (whole[0], ([], []))}
        assert name != "config.json" and found in (whole, lost[name])
    except (ValueError, FileNotFoundError) as error:
        assert name in str(error) and "\n" not in str(error)
    assert contents(tmp_path) == before


def test_old_results_are_not_those_of_a_new_config(tmp_path):
    """Another run's config.json in the place of the right one is no way in."""
    store.write(tmp_path, described())
    train(tmp_path)
    new = described(**{"training.epochs": 3})
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match=r"config\.json is not there, and .*results\.json is of"):
        store.begun(tmp_path, new)
    store.write(tmp_path, new)
    with pytest.raises(ValueError, match=r"results\.json, entry 1 is of another experiment"):
        store.begun(tmp_path, new)


def test_results_of_an_older_version_are_believed_beside_their_config(tmp_path):
    new = described()
    store.write(tmp_path, new)
    (tmp_path / "results.json").write_text(
        '[{"experiment": "e", "row": "0", "description": "", "seed": 0, "step": 1, "metrics": {}}]'
    )
    without = json.loads((tmp_path / "config.json").read_text())
    del without["sha256"], without["earlier_fingerprints"]
    (tmp_path / "config.json").write_text(json.dumps(without))
    assert store.begun(tmp_path, new)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match="config.json is not there"):
        store.begun(tmp_path, new)


def test_a_grown_table_believes_what_it_stored_before(tmp_path):
    wider = begun(tmp_path, described(), described(rows={"8": "lang-pos"}))
    store.write(tmp_path, wider)
    again = store.begun(tmp_path, described(rows={"8": "lang-pos"}))
    assert again["fingerprint"] == wider["fingerprint"] not in wider["earlier_fingerprints"]
    assert store.begun(tmp_path, described()) == again


def test_a_run_that_trained_nothing_binds_nobody(tmp_path):
    store.write(tmp_path, described())
    other = described(**{"training.epochs": 3})
    (tmp_path / "checkpoints" / "group0" / "5.orbax-checkpoint-tmp").mkdir(parents=True)
    assert store.begun(tmp_path, other) is None
    (tmp_path / "checkpoints" / "group0" / "5").mkdir()
    with pytest.raises(ValueError, match="training.epochs: 2 there, 3 now"):
        store.begun(tmp_path, other)


def test_rows_added_to_a_workdir_have_folders_of_their_own(tmp_path):
    with pytest.raises(ValueError, match="would have the same folder, a_b"):
        begun(tmp_path, described(rows={"a/b": "x"}), described(rows={"a?b": "y"}))


def test_another_text_is_refused_naming_it(tmp_path):
    other = [{**TEXTS[0], "sha256": "2" * 64}]
    with pytest.raises(ValueError, match="the content of a.txt"):
        begun(tmp_path, described(), described(other))


def test_a_model_of_a_run_is_not_one_of_its_name_that_is_given_by_its_folder(tmp_path):
    def of(field, folder):
        entry = {"source": f"en-fr/{folder}/en/model.json", "language": "model", "field": field}
        return described([{**entry, "sha256": field}])

    ours, given = of("runs", "rowa_seed0"), of("pretrained", "a_seed1")
    for place, (before, now) in enumerate(itertools.permutations([ours, given])):
        with pytest.raises(ValueError, match="en-fr/a: the model of a run"):
            begun(tmp_path / str(place), before, now)
    assert begun(tmp_path / "other", ours, of("pretrained", "b_seed0"))


@pytest.mark.parametrize(
    ("one", "other", "is_refused"),
    [
        ("train", "dev", True),
        ("texts.ner.en.train", "texts.ner.en.test", True),
        ("texts_of_pair.en_fr.ner.en.train", "texts.ner.en.test", True),
        ("texts.ner.en.train", "texts.nli.en.test", False),
        ("learned", "tested", True),
        ("dictionary", "test_dictionary", True),
        ("other", "dev", True),
        ("dev", "test", False),
    ],
)
def test_what_is_learned_from_is_not_tested_on(one, other, is_refused):
    texts = [{**TEXTS[0], "field": field} for field in (one, other)]
    one, other = (re.sub(r"^texts(_of_pair.en_fr)?\.", "", x) for x in (one, other))
    refused = pytest.raises(ValueError, match=f"^a.txt is both {one} and {other} of en: ")
    with refused if is_refused else contextlib.nullcontext():
        store.require_apart(texts)
    store.require_apart([texts[0], {**texts[1], "language": "de"}])
    store.require_apart([texts[0], {**texts[1], "sha256": "2" * 64}])


def test_what_is_learned_from_in_the_first_language_is_not_the_first_side_of_a_test():
    texts = [{**TEXTS[0], "field": "train"}, {**TEXTS[0], "field": "test_first", "language": "fr"}]
    with pytest.raises(ValueError, match="^a.txt is both train and test_first of en: "):
        store.require_apart(texts)
    store.require_apart([texts[0], {**texts[1], "sha256": "2" * 64}])


def test_a_file_may_serve_twice_cut_at_different_places(tmp_path):
    texts = [TEXTS[0], {**TEXTS[0], "sha256": "2" * 64}]
    assert begun(tmp_path, described(texts), described(texts))


def test_errors_are_named_by_their_field():
    with pytest.raises(ValueError, match="a.b: .*codec"), errors.in_field("a.b"):
        b"\xff".decode()
    with pytest.raises(FileNotFoundError, match="a.b: none"), errors.in_field("a.b"):
        raise FileNotFoundError("none")
