"""Weighted linear models with few features: ridge regression, and three ways to choose the features."""

import numpy as np

def weighted_ridge(design, targets, weights, penalty=1.0):
    """Least squares with weighted cases and ``penalty`` times the sum of squared coefficients; free intercept.

    Returns intercept, coefficients, and score: one minus the weighted mean square of the residuals over that of the
    targets around their weighted mean, or 0 if the latter is below 1e-12.
    """
    shares = np.divide(weights, np.sum(weights))
    middle, level = np.dot(shares, design), float(np.dot(shares, targets))
    centred, lifted = np.subtract(design, middle), np.subtract(targets, level)
    gram = np.dot(centred.T, weights[:, np.newaxis] * centred)
    moment = np.dot(centred.T, np.multiply(weights, lifted))
    coefficients = np.linalg.solve(gram + penalty * np.eye(len(gram)), moment)
    total = float(np.dot(shares, np.square(lifted)))
    error = float(np.dot(shares, np.square(lifted - np.dot(centred, coefficients))))
    score = 1.0 - error / total if total >= 1e-12 else 0.0
    return level - float(np.dot(middle, coefficients)), coefficients, score


def lasso_path(design, targets, weights, most):
    """K-LASSO: the features at the last knot of the lasso path with at most ``most`` of them (indices, increasing).

    Cases are centred by their weighted mean and multiplied by the root of their weight's share of all weights. The path
    is followed by least angle regression: the active coefficients move together so that all active correlations with
    the residual keep the same absolute value; at a knot a feature joins, or one whose coefficient reaches 0 leaves
    (it may not join again at the same knot). It ends before more than ``most`` are active, when the correlations are
    below 1e-9, or when all features are active.
    """
    shares = np.divide(weights, np.sum(weights))
    roots = np.sqrt(shares)[:, np.newaxis]
    columns = roots * (design - np.dot(shares, design))
    correlations = np.dot(columns.T, np.ravel(roots) * (targets - np.dot(shares, targets)))
    coefficients = np.zeros(len(correlations))
    active, left = [], -1
    joining = int(np.argmax(np.abs(correlations)))
    while np.max(np.abs(correlations)) >= 1e-9 and (joining < 0 or len(active) < most):
        active = [*active, joining] if joining >= 0 else active
        level = np.max(np.abs(correlations))
        chosen = columns[:, active]
        direction = np.linalg.solve(np.dot(chosen.T, chosen), np.sign(correlations[active]))
        slopes = np.dot(columns.T, np.dot(chosen, direction))
        length, joining, leaving = level, -1, -1
        for feature in np.setdiff1d(np.arange(len(coefficients)), [*active, left]):
            for side in (1.0, -1.0):
                reach = (level - side * correlations[feature]) / max(1.0 - side * slopes[feature], 1e-12)
                if reach < length:
                    length, joining = reach, int(feature)
        for feature, speed in zip(active, direction):
            reach = -coefficients[feature] / speed
            if 0.0 < reach < length:
                length, joining, leaving = reach, -1, feature
        coefficients[active] += length * direction
        correlations -= length * slopes
        active, left = [feature for feature in active if feature != leaving], leaving
    return np.sort(active)


def forward_selection(design, targets, weights, most):
    """Start with no features, and add the one that explains most, until there are ``most`` or all of them.

    A feature is worth the score of the ridge regression on the chosen features and this one. The worth must be at least
    1e-9 above that of the best feature before it, in increasing order, to be better. Indices are returned in the order
    of choice.
    """
    chosen, rest = [], list(range(design.shape[1]))
    while rest and len(chosen) < most:
        best, worth = rest[0], -np.inf
        for feature in rest:
            columns = np.take(design, [*chosen, feature], axis=1)
            score = weighted_ridge(columns, targets, weights)[2]
            if score >= worth + 1e-9:
                best, worth = feature, score
        chosen.append(best)
        rest.remove(best)
    return np.asarray(chosen)


def largest_weights(design, targets, weights, most):
    """The features with the largest absolute coefficients of the ridge regression on all of them."""
    _, coefficients, _ = weighted_ridge(design, targets, weights)
    return np.argsort(-np.abs(coefficients), kind="stable")[:most]


#: name -> way to choose features
SELECTORS = {"lasso": lasso_path, "forward": forward_selection, "weights": largest_weights}
