"""Gradients through ODE solvers that choose their own steps, compiled."""

from . import common, workloads


class EndState:
    """Dormand and Prince's method at 1e-8; of the end state, by start and rates."""

    params = (tuple(workloads.ODES),)
    param_names = ("problem",)

    def setup(self, problem):
        self.work = workloads.solver(problem)
        self.work.run()

    def time_value_and_grad(self, problem):
        """One call."""
        self.work.run()

    def track_step(self, problem):
        """Of a step, forward and back."""
        return common.median_seconds(self.work.run) / workloads.steps(problem) * 1e9

    track_step.unit = "ns"

    def track_steps(self, problem):
        """How many there are, those that are tried again among them: a count, always the same."""
        return workloads.steps(problem)

    track_steps.unit = "steps"


class Fit:
    """The loss of `examples/fit_ode.py`: arrays grow with the steps, states lie between them."""

    def setup(self):
        self.work = workloads.fit()
        self.work.run()

    def time_value_and_grad(self):
        """One call, as the optimiser makes it."""
        self.work.run()
