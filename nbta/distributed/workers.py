"""Whether the processes of a cluster can do the work, found before it starts."""

import weakref

import nbta
from nbta.errors import FailedPreconditionError

#: Asks a process that may not have nbta, so that nothing of nbta may be sent to it.
_QUESTION = "__import__('nbta').__version__"
_checked = weakref.WeakKeyDictionary()


def check(client) -> None:
    """See that scheduler and workers have this version of nbta; each is asked once.

    Raises
    ------
    FailedPreconditionError
        Which names those that have not, and says what to do.
    """
    known = _checked.setdefault(client, set())
    if not known:
        _check_answers({"the scheduler": _ask_scheduler(client)})
    workers = set(client.nthreads())
    new = sorted(workers - known)
    if new:
        answers = client.run(eval, _QUESTION, workers=new, on_error="return")
        _check_answers({f"worker {address}": answer for address, answer in answers.items()})
    _checked[client] = workers or known


def _ask_scheduler(client):
    try:
        return client.run_on_scheduler(eval, _QUESTION)
    except Exception as error:
        return error


def _check_answers(answers):
    # A process that is gone gives an OSError; with that Dask copes.
    wrong = {w: e for w, e in answers.items() if not isinstance(e, str | OSError)}
    if wrong:
        message = (
            f"nbta cannot be imported by {_listed([f'{w} ({e})' for w, e in wrong.items()])}; "
            f"install it in the environment of every process of the cluster: pip install "
            f"nbta=={nbta.__version__}"
        )
        raise FailedPreconditionError(message)
    versions = {who: answer for who, answer in answers.items() if isinstance(answer, str)}
    others = [f"{who} has {has}" for who, has in versions.items() if has != nbta.__version__]
    if others:
        message = (
            f"the client has nbta {nbta.__version__}, and {_listed(others)}; install one version "
            f"everywhere"
        )
        raise FailedPreconditionError(message)


def _listed(parts, shown=5):
    more = len(parts) - shown
    return ", ".join(parts[:shown]) + (f" and {more} more" if more > 0 else "")
