"""BayesianSVM: a linear classifier with the Bayesian support vector machine, as scikit-learn wants them."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from kruskal.engines.one_vs_all import METHODS, ClassFit, Plan, fit_one_vs_all
from kruskal.engines.tasks import blas_on_one_thread
from kruskal.engines.threads import check_threads
from kruskal.errors import InputError, check_seed, flag, one_of, positive_number, shown, whole_number
from kruskal.estimators.calibration import Groups, NotCalibratedError, check_groups, even_folds
from kruskal.estimators.classifier import Classifier, check_features, check_labels
from kruskal.estimators.scikit import unchanged_on_failure
from kruskal.estimators.whitening import check_whitening, prepare
from kruskal.gibbs.precision import GammaPrior
from kruskal.gibbs.svm import decisions
from kruskal.models.svm import SVM
from kruskal.models.temperature import fit_scale, probabilities

CLEARLY = 2.0  # times tol: a search that ends with a larger relative gap is worth a warning


class BayesianSVM(Classifier):
    r"""Linear support vector machine, one class against the others, with a Gaussian prior of the weights.

    For class c and signs y = +-1 the pseudo-likelihood is exp(-2C max(0, 1 - y f)), f = w^T x + b, with
    w_j ~ N(0, 1/precision) and b ~ N(0, 1/bias_precision). Its maximum is the usual support vector machine:
    ``LinearSVC(loss="hinge", C=2 C / precision)``. Classes are fitted side by side on threads; results do not
    depend on their number.

    Parameters
    ----------
    C : float
        Weight of the hinge loss.
    method : {"auto", "em", "stochastic", "gibbs"}
        ``em``: the maximum, by a few steps of EM and then Newton's method on its floored hinge, to a
        certified relative distance ``tol`` from the optimum.
        ``stochastic``: the same, item by item in random order (coordinate ascent on the dual), for data with
        very many items; it wants features of about equal scale, and ends after ``max_passes`` passes, with a
        warning if it is not there.
        ``gibbs``: exact Gibbs sampling; weights and decisions are posterior means, and ``coef_std_`` tells
        how sure they are. A sweep costs N d^2 per class (N^3 with fewer items N than features d).
        ``auto``: ``em``, or ``stochastic`` if N d times the number of classes exceeds 2e9.
    precision : float or "learn"
        Precision omega of the weights; ``"learn"`` gives it a Gamma prior and one value per class (only with
        ``gibbs``: the joint maximum over weights and precision is at weights zero).
    precision_prior : (shape, rate)
        Of a learned precision.
    bias_precision : float
        Precision omega_0 of the bias.
    n_sweeps, burn_in : int
        Gibbs sweeps in all, and how many of them are not kept.
    keep_draws : bool
        Keep the drawn weights (``draws_``; only with ``gibbs``).
    tol, max_passes, time_budget : float, int or None, seconds or None
        Where a search ends: at a relative duality gap of at most ``tol``; after ``max_passes`` passes
        (``stochastic``; by default 50, and up to 10,000 where N d times the number of classes is less than
        5e7, as far as they cost no more); after ``time_budget`` seconds for one fit of all classes, as far as
        a step can be foreseen. What fits into a time depends on the machine, so such a fit is not
        reproducible.
    standardize : bool
        Give every feature mean 0 and standard deviation 1 first; the prior then is one of the standardised
        weights. ``coef_`` and ``intercept_`` are always in the units of the features given.
    whiten : float or None
        A strength s: weights have the prior N(0, (S + s m I)^-1 / precision), S being the covariance of the
        features (the standardised ones with ``standardize``) and m the mean of its diagonal. Directions in
        which items differ much do not count for more than others; the larger s, the more they do, up to a
        plain prior of features that are divided by sqrt(s m). C does not depend on the unit of the features.
    calibration_folds : int
        `predict_proba` needs decisions for items that were not trained on: so many folds are left out in
        turn and predicted, which takes as many more fits. 0: no `predict_proba`. Fewer folds are used if a
        class has fewer items; with a single one the training decisions have to do.
    seed : int;  threads : int or None (all cores)

    Attributes
    ----------
    classes_ : (Y,);  n_features_in_ : d
    coef_ : (Y, d), (1, d) for two classes;  intercept_ : (Y,) or (1,)
    coef_std_, intercept_std_ : posterior standard deviations (``gibbs``)
    draws_ : (Y, draws, d + 1) weights with the bias last (``gibbs`` with ``keep_draws``)
    precision_ : (Y,) omega, its posterior mean if it is learned
    gap_ : (Y,) relative distance from the optimum at most (``em``, ``stochastic``)
    temperature_ : t of `kruskal.models.temperature` (if calibrated)
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        method: str = "auto",
        precision: float | str = 1.0,
        precision_prior: tuple[float, float] = (1.0, 1.0),
        bias_precision: float = 0.01,
        n_sweeps: int = 300,
        burn_in: int = 100,
        keep_draws: bool = False,
        tol: float = 1e-4,
        max_passes: int | None = None,
        time_budget: float | None = None,
        standardize: bool = False,
        whiten: float | None = None,
        calibration_folds: int = 3,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.C = C
        self.method = method
        self.precision = precision
        self.precision_prior = precision_prior
        self.bias_precision = bias_precision
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.keep_draws = keep_draws
        self.tol = tol
        self.max_passes = max_passes
        self.time_budget = time_budget
        self.standardize = standardize
        self.whiten = whiten
        self.calibration_folds = calibration_folds
        self.seed = seed
        self.threads = threads

    def check_parameters(self) -> None:
        """Complain about parameters that no data would fit."""
        self._model()
        self._plan()
        whole_number("calibration_folds", self.calibration_folds, 0)
        check_seed(self.seed)
        check_threads(self.threads)

    def fit(self, X: Any, y: Any, groups: Any = None) -> "BayesianSVM":
        """Fit to features X (N, d) and labels y (N,), numbers or strings.

        ``groups`` (N,) says which items are copies of one thing: for the probabilities they are left out
        together, and the mean of their decisions counts.
        """
        self.check_parameters()
        model, plan, folds = self._model(), self._plan(), self.calibration_folds
        with unchanged_on_failure(self), blas_on_one_thread():  # results do not depend on its threads
            X = check_features(self, X, fitting=True)
            self.classes_, labels = check_labels(y, len(X))
            grouped = check_groups(groups, labels)
            fits = self._fit(X, labels, model, plan, 0)
            weights = np.array([one.weights for one in fits])
            self.coef_, self.intercept_ = weights[:, :-1].copy(), weights[:, -1].copy()
            self.precision_ = np.array([one.precision for one in fits])
            self._keep_uncertainty(fits, plan)
            if folds:
                self.temperature_ = self._calibrate(X, labels, grouped, model, plan, folds)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Decisions f (N, Y), or (N,) for two classes; posterior means with ``gibbs``."""
        f = self._decide(X)
        return f[:, 0] if f.shape[1] == 1 else f

    def predict(self, X: Any) -> np.ndarray:
        """The class (N,) with the largest decision."""
        f = self._decide(X)
        index = (f[:, 0] > 0.0).astype(int) if f.shape[1] == 1 else f.argmax(axis=1)
        return self.classes_[index]

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """Calibrated probabilities (N, Y) of the classes, as a function of X; absent without calibration."""
        if self.calibration_folds == 0:
            raise NotCalibratedError("predict_proba needs calibration_folds of at least 1, not 0")
        if self.__sklearn_is_fitted__() and not hasattr(self, "temperature_"):
            raise NotCalibratedError("predict_proba needs a fit with calibration_folds: call fit again")
        return self._probabilities

    def decision_std(self, X: Any) -> np.ndarray:
        """Posterior standard deviations of the decisions, shaped as they are; needs two kept draws."""
        X = check_features(self, X, fitting=False)
        if not hasattr(self, "draws_"):
            raise InputError("decision_std needs method 'gibbs' and keep_draws=True, which were not given")
        if self.draws_.shape[1] < 2:
            raise InputError("decision_std needs at least two kept draws, not 1: give more n_sweeps")
        with blas_on_one_thread():
            std = np.stack([decisions(X, draws.T).std(axis=1, ddof=1) for draws in self.draws_], axis=1)
        return std[:, 0] if std.shape[1] == 1 else std

    def _decide(self, X: Any) -> np.ndarray:
        X = check_features(self, X, fitting=False)
        with blas_on_one_thread():
            return decisions(X, np.vstack([self.coef_.T, self.intercept_]))

    def _probabilities(self, X: Any) -> np.ndarray:
        return probabilities(self._decide(X), self.temperature_)

    def _fit(self, X: np.ndarray, labels: np.ndarray, model: SVM, plan: Plan, fold: int) -> list[ClassFit]:
        seen = prepare(X, flag("standardize", self.standardize), check_whitening(self.whiten))
        return fit_one_vs_all(
            seen.values, labels, len(self.classes_), model, plan, int(self.seed),
            check_threads(self.threads), fold, seen.restore,
        )  # fmt: skip

    def _keep_uncertainty(self, fits: list[ClassFit], plan: Plan) -> None:
        for name in ("coef_std_", "intercept_std_", "draws_", "gap_", "temperature_"):
            self.__dict__.pop(name, None)
        if plan.method == "gibbs":
            std = np.array([one.std for one in fits])
            self.coef_std_, self.intercept_std_ = std[:, :-1].copy(), std[:, -1].copy()
            if plan.keep_draws:
                self.draws_ = np.array([one.draws for one in fits])
            return
        self.gap_ = np.array([one.gap for one in fits])
        if self.gap_.max() > CLEARLY * plan.tolerance:
            warnings.warn(
                f"the search ended up to {100 * self.gap_.max():.3g} % above the optimum, more than tol "
                f"({100 * plan.tolerance:.3g} %): scale the features (standardize=True), allow more "
                "max_passes or time_budget or a larger tol, or use method 'em'",
                stacklevel=3,
            )

    def _calibrate(
        self, X: np.ndarray, labels: np.ndarray, groups: Groups, model: SVM, plan: Plan, folds: int
    ) -> float:
        """The scale of the decisions of groups that were left out, classes spread evenly over the folds."""
        folds = min(folds, int(np.bincount(groups.labels).min()))
        if folds < 2:
            f = decisions(X, np.vstack([self.coef_.T, self.intercept_]))
            return fit_scale(groups.means(f), groups.labels)
        fold_of = even_folds(groups.labels, folds, int(self.seed))[groups.of_item]
        f = np.empty((len(X), len(self.coef_)))
        for fold in range(folds):
            out = fold_of == fold
            fits = self._fit(X[~out], labels[~out], model, plan._replace(keep_draws=False), fold + 1)
            f[out] = decisions(X[out], np.array([one.weights for one in fits]).T)
        return fit_scale(groups.means(f), groups.labels)

    def _model(self) -> SVM:
        learned = isinstance(self.precision, str)
        if learned and self.precision != "learn":
            raise InputError(f"precision must be a number above 0 or 'learn', not {shown(self.precision)}")
        if learned and self.method != "gibbs":
            raise InputError(f"precision 'learn' needs method 'gibbs', not {self.method!r}")
        try:
            shape, rate = self.precision_prior
        except (TypeError, ValueError):
            raise InputError(
                f"precision_prior must be (shape, rate), not {shown(self.precision_prior)}"
            ) from None
        prior = GammaPrior(
            positive_number("precision_prior", shape), positive_number("precision_prior", rate)
        )
        return SVM(
            cost=positive_number("C", self.C),
            precision=1.0 if learned else positive_number("precision", self.precision),
            bias_precision=positive_number("bias_precision", self.bias_precision),
            precision_prior=prior if learned else None,
        )

    def _plan(self) -> Plan:
        one_of("method", self.method, METHODS)
        flag("standardize", self.standardize)
        check_whitening(self.whiten)
        if self.time_budget is not None and self.method == "gibbs":
            raise InputError("time_budget is not for method 'gibbs': give n_sweeps instead")
        keep_draws = flag("keep_draws", self.keep_draws)
        if keep_draws and self.method != "gibbs":
            raise InputError(f"keep_draws=True needs method 'gibbs', not {self.method!r}")
        n_sweeps = whole_number("n_sweeps", self.n_sweeps, 1)
        return Plan(
            method=self.method,
            n_sweeps=n_sweeps,
            burn_in=whole_number("burn_in", self.burn_in, 0, n_sweeps - 1),
            keep_draws=keep_draws,
            tolerance=positive_number("tol", self.tol),
            max_passes=None if self.max_passes is None else whole_number("max_passes", self.max_passes, 1),
            time_budget=None
            if self.time_budget is None
            else positive_number("time_budget", self.time_budget),
        )
