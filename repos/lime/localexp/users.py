"""Simulated users, who decide by explanations whom and what to trust."""

import numpy as np


def rests_on(predict, features, untrusted):
    """Which predictions change when the untrusted features are removed, as a mask: the ones not to trust."""
    stripped = np.array(features)
    stripped[:, untrusted] = 0.0
    before, after = predict(features) > 0.5, predict(stripped) > 0.5
    return before != after


def mistrusts(explanations, untrusted, additive):
    """Which predictions a user who knows the untrusted features does not trust, as a mask.

    Of an additive explanation, the user takes away the contributions of untrusted features from the explanation's own
    prediction, and mistrusts it if the decision (above 1/2 or not) changes. Any other explanation is mistrusted if an
    untrusted feature occurs at all.
    """
    verdicts = []
    for explanation in explanations:
        doubtful = explanation.among(untrusted)
        if additive:
            remainder = explanation.local - float(np.sum(np.compress(doubtful, explanation.weights)))
            verdicts.append(np.not_equal(explanation.local > 0.5, remainder > 0.5))
        else:
            verdicts.append(np.any(doubtful))
    return np.array(verdicts, dtype=bool)


def choose_classifier(rivals, picks, artifacts, additive):
    """A user's choice between two classifiers after seeing a few explanations of each.

    ``rivals`` holds the explanations of both for the same instances, ``picks`` the rows that the user sees of each. The
    user recognises the artifacts in what is shown and distrusts exactly those for this classifier, counts the
    predictions of all instances that are then mistrusted, and takes the classifier with the smaller count. Returns the
    choice, 0 or 1, or 0.5 if the counts are equal, and the two shares of mistrusted predictions.
    """
    counts = []
    for explanations, rows in zip(rivals, picks):
        shown = np.concatenate([explanations[row].features for row in rows])
        recognised = np.intersect1d(shown, artifacts)
        counts.append(float(np.mean(mistrusts(explanations, recognised, additive))))
    choice = 0.5 * (1.0 + np.sign(counts[0] - counts[1]))
    return float(choice), counts
