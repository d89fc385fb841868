"""From a log to jobs: sizes, shapes, classes, load and weights; and all that is assumed is said."""

import numpy as np
import pytest

from malleable.errors import MalleableError, TraceError
from malleable.speedups.amdahl import Amdahl
from malleable.traces import Study, malleabilise, read_study, read_trace
from support.logs import CURVES, NASA, POLLUX, SWF, real, written


@pytest.fixture
def trace(tmp_path):
    return read_trace(written(tmp_path, SWF))


def test_a_job_takes_on_its_own_cores_as_long_as_the_log_says(trace):
    """Size over the speed on the cores of the log is the run time of the log."""
    jobs = malleabilise(trace, speedup="amdahl:sequential=0.1")
    speeds = Amdahl(0.1)(jobs.cores)
    assert np.allclose(jobs.sizes / speeds, trace.duration, rtol=1e-15)
    assert jobs.run_times.tolist() == trace.duration.tolist()
    assert jobs.times.tolist() == trace.submit.tolist()
    assert jobs.ids == ("1", "6", "2")


def test_rigid_jobs_are_of_classes_with_their_width(trace):
    """With no malleable job, each class is rigid on the width of its jobs."""
    jobs = malleabilise(trace, malleable=0.0, classes="none")
    types = [jobs.workload.classes[i] for i in jobs.classes]
    assert [(one.shape, one.width) for one in types] == [("rigid", 4), ("rigid", 16), ("rigid", 8)]
    assert jobs.groups == ("all", "all", "all")


@real
@pytest.mark.parametrize("choose", ["jobs", "widest", "longest"])
def test_shares_are_exact_and_nested(choose):
    """A share p makes round(p·N) jobs malleable, and those of a smaller share are among them."""
    trace = read_trace(NASA)
    before = np.zeros(len(trace), dtype=bool)
    for share in (0.0, 0.2, 0.55, 1.0):
        jobs = malleabilise(trace, malleable=share, choose=choose, seed=3)
        shapes = np.array([one.shape for one in jobs.workload.classes])[jobs.classes]
        now = shapes == "malleable"
        assert now.sum() == round(share * len(trace))
        assert (now | ~before).all()
        before = now


@real
def test_all_jobs_of_a_user_are_alike():
    """Users are malleable or not as a whole."""
    jobs = malleabilise(read_trace(NASA), malleable=0.5, choose="users")
    shapes = np.array([one.shape for one in jobs.workload.classes])[jobs.classes]
    kinds = {(user, shape) for user, shape in zip(jobs.users, shapes, strict=True)}
    assert len(kinds) == len(set(jobs.users))
    assert {shape for _, shape in kinds} == {"malleable", "rigid"}


@real
def test_load_is_met():
    """Work over span and cores is the load that was asked for."""
    jobs = malleabilise(read_trace(NASA), cores=128, load=0.5)
    assert jobs.sizes.sum() / (128 * jobs.times[-1]) == pytest.approx(0.5)
    assert jobs.waits is None
    assert any("the load is 0.5 of 128 cores" in said for said in jobs.assumptions)


@real
def test_means_of_the_workload_are_those_of_the_jobs():
    """Each class has the mean size of its jobs, and all rates together are jobs over span."""
    jobs = malleabilise(read_trace(NASA))
    for i, one in enumerate(jobs.workload.classes):
        assert one.size.mean == pytest.approx(jobs.sizes[jobs.classes == i].mean(), rel=1e-3)
    assert jobs.workload.total_rate == pytest.approx(len(jobs) / jobs.times[-1])


@real
def test_pollux_speeds_up_as_measured():
    """A folder of measurements gives each application its speedup, and the study gives run times."""
    trace = read_trace(POLLUX)
    assert len(trace) == 160
    jobs = malleabilise(trace, speedup=str(CURVES), durations=3600)
    assert set(jobs.groups) == {"cifar10", "deepspeech2", "bert", "ncf", "imagenet", "yolov3"}
    with pytest.raises(TraceError, match="does not say how long its jobs run"):
        malleabilise(trace)
    by_class = dict.fromkeys(jobs.groups, 60.0) | {"bert": 600.0}
    jobs = malleabilise(trace, durations=by_class)
    assert set(jobs.run_times[[name == "bert" for name in trace.application.words()]]) == {600.0}


def test_wider_than_the_machine(trace):
    """Jobs that are wider than the machine are left out, and counted."""
    jobs = malleabilise(trace, cores=8)
    assert len(jobs) == 2
    assert "1 jobs are left out: they are wider than 8 cores" in jobs.assumptions
    with pytest.raises(TraceError, match="all jobs"):
        malleabilise(trace, cores=2)


def test_weights_by_user_and_class(trace):
    """A weight holds for the jobs of a user; others weigh 1."""
    jobs = malleabilise(trace, weights={"user": {"user-8": 4.0}})
    assert jobs.weight.tolist() == [1.0, 1.0, 4.0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"malleable": 0.7, "moldable": 0.5}, "shares"),
        ({"load": 0.5}, "share of a number of cores"),
        ({"speedup": "amdal:sequential=0.1"}, "amdal"),
        ({"speedup": "there/is/none.csv"}, "no file"),
        ({"speedups": {"nobody": "amdahl:sequential=0.1"}}, "no class 'nobody'"),
        ({"weights": {"user": {"nobody": 2.0}}}, "no user 'nobody'"),
        ({"weights": {"group": {"a": 2.0}}}, "by class or user"),
        ({"weights": {"user": {"user-8": -1}}}, "above 0"),
        ({"classes": "mood"}, "classes"),
        ({"choosy": 1}, "no key 'choosy'"),
        ({"cores": 0}, "cores"),
        ({"malleable": 2.0}, "malleable"),
    ],
)
def test_wrong_studies_are_one_sentence(trace, changes, said):
    """What cannot be assumed is said in one line, with a hint where there is something to do."""
    with pytest.raises(MalleableError, match=said) as caught:
        malleabilise(trace, **changes)
    assert "\n" not in caught.value.sentence


def test_a_study_is_read_back(tmp_path, trace):
    """A study written as TOML is the same study, and gives the same jobs; its log stands next to it."""
    written(tmp_path, SWF, "small.swf")
    study = Study(log="small.swf", malleable=0.5, seed=4, classes="user", weights={"user": {"user-8": 2.0}})
    again = read_study(written(tmp_path, study.to_toml(), "study.toml"))
    assert again.log == str(tmp_path / "small.swf")
    first, second = malleabilise(trace, study), malleabilise(read_trace(again.log), again)
    assert first.workload.classes == second.workload.classes
    assert first.weights.tolist() == second.weights.tolist()
    assert first.classes.tolist() == second.classes.tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [("log = ", "not valid TOML"), ("cores = 4", "names no log"), ('log = "a"\nclases = "user"', "clases")],
)
def test_wrong_study_files(tmp_path, text, said):
    with pytest.raises(TraceError, match=said):
        read_study(written(tmp_path, text, "study.toml"))
