"""Wrong variants of the explanations' functions."""

SUPER = "localexp/images.py::superpixels"
wrong(SUPER, "centres start with the pixel's own brightness", ("np.full(per_side**2, np.mean(image))", "np.asarray(image).reshape(side, side)[np.ix_(np.rint(middles).astype(int), np.rint(middles).astype(int))].ravel()"))
wrong(SUPER, "column order", ('indexing="ij"', 'indexing="xy"'))
wrong(SUPER, "ends with the assignment", ("range(rounds)", "range(rounds + 1)"))
wrong(SUPER, "positions only move", ("centres[centre] = np.mean(points[owners == centre], axis=0)", "centres[centre, :2] = np.mean(points[owners == centre, :2], axis=0)"))
wrong(SUPER, "highest index on ties", ("np.argmax(squares < np.min(squares, axis=1, keepdims=True) + 1e-9, axis=1)", "per_side**2 - 1 - np.argmax((squares < np.min(squares, axis=1, keepdims=True) + 1e-9)[:, ::-1], axis=1)"))
wrong(SUPER, "gaps in the numbers", ("return np.unique(owners, return_inverse=True)[1]", "return owners"))
LASSO = "localexp/selection.py::lasso_path"
wrong(LASSO, "nothing ever leaves", ("for feature, speed in zip(active, direction):", "for feature, speed in []:"))
wrong(LASSO, "not weighted", ("np.divide(weights, np.sum(weights))", "np.ones(len(weights)) / len(weights)"))
wrong(LASSO, "stagewise: largest correlations", "shares = weights / np.sum(weights)\ncolumns = np.sqrt(shares)[:, None] * (design - shares @ design)\nanswer = columns.T @ (np.sqrt(shares) * (targets - shares @ targets))\nreturn np.sort(np.argsort(-np.abs(answer), kind='stable')[:most])")
wrong(LASSO, "one more", ("len(active) < most", "len(active) <= most"))
wrong(LASSO, "centred without weights", ("design - np.dot(shares, design)", "design - np.mean(design, axis=0)"))
PICK = "localexp/pick.py::submodular_pick"
wrong(PICK, "filled by index", ('order = np.argsort(-np.sum(table, axis=1), kind="stable")', "order = np.arange(len(table))"))
wrong(PICK, "not filled", ("            picked.extend(others[: budget - len(picked)])\n", ""))
wrong(PICK, "importance without the root", ("np.sqrt(np.sum(table, axis=0))", "np.sum(table, axis=0)"))
wrong(PICK, "last on ties", ("int(np.argmax(gains > np.max(gains) - 1e-9))", "int(len(gains) - 1 - np.argmax((gains > np.max(gains) - 1e-9)[::-1]))"))
ART = "localexp/corpus.py::plant_artifacts"
wrong(ART, "1 for ln 2", ("np.log1p(present.astype(float))", "present.astype(float)"))
wrong(ART, "first part does not mislead", ("number == len(parts)", "number == 1"))
wrong(ART, "favours the other class", ("np.mod(np.arange(n_artifacts), 2)", "np.mod(np.arange(n_artifacts) + 1, 2)"))
wrong("localexp/sampling.py::stratified_split", "r / m", ("np.arange(len(members)) + 0.5", "np.arange(len(members))"))
wrong("localexp/sampling.py::stratified_split", "bound below", ('side="right"', 'side="left"'))
wrong("localexp/sampling.py::stratified_split", "order of the permutation", ("chosen = [np.flatnonzero(part == number) for number in range(len(shares))]", "once = rng.permutation(len(part))\n    chosen = [once[part[once] == number] for number in range(len(shares))]"))
wrong("localexp/corpus.py::ReviewCorpus.sample", "same tilt for bad reviews", ("np.where(labels > 0, strengths, -strengths)", "np.where(labels > 0, strengths, 0.0)"))
wrong("localexp/corpus.py::ReviewCorpus.sample", "counts themselves", ("np.log1p(np.stack(counts))", "np.stack(counts)"))
wrong("localexp/corpus.py::ReviewCorpus.sample", "mean 1", ("rng.gamma(4.0, 0.125", "rng.gamma(4.0, 0.25"))
LOG = "localexp/logistic.py::SparseLogistic.fit"
wrong(LOG, "offset shrinks, too", ("            shrunk[-1] = moved[-1]\n", ""))
wrong(LOG, "no acceleration", ("probe = point + (older - 1.0) / age * move", "probe = point"))
wrong(LOG, "step by n", ("4.0 * len(design)", "len(design)"))
wrong(LOG, "penalty without the step", ("step * self.penalty", "self.penalty"))
wrong(LOG, "norm of the move", ("np.max(np.abs(move))", "np.linalg.norm(move)"))
MOST = "localexp/logistic.py::SparseLogistic.with_at_most"
wrong(MOST, "the model with more", ("return best", "return chosen"))
wrong(MOST, "fewer than", ("<= most", "< most"))
wrong(MOST, "labels not centred", ("np.subtract(labels, np.mean(labels))", "np.asarray(labels, dtype=float)"))
SPLIT = "localexp/trees.py::best_split"
wrong(SPLIT, "lowest threshold first", ("column, place = np.argwhere(gains.T > best - 1e-9)[0]", "place, column = np.argwhere(gains > best - 1e-9)[0]"))
wrong(SPLIT, "threshold at the value", ("np.mean(values[place : place + 2, column])", "values[place, column]"))
wrong(SPLIT, "last of equal gains", ("np.argwhere(gains.T > best - 1e-9)[0]", "np.argwhere(gains.T > best - 1e-9)[-1]"))
wrong(SPLIT, "gain by weights", ("return Split(float(best)", "return Split(float(best / len(order))"))
TREE = "localexp/trees.py::DecisionTree.fit"
wrong(TREE, "younger leaf on ties", ("(-round(split.gain, 9), number, split, rows)", "(-round(split.gain, 9), -number, split, rows)"), ("_, number, split, rows = heapq.heappop(queue)", "_, number, split, rows = heapq.heappop(queue)\n            number = -number"))
wrong(TREE, "depth first", ("(-round(split.gain, 9), number, split, rows)", "(number, number, split, rows)"))
wrong(TREE, "right child first", ("open_leaf(rows[goes_left]), open_leaf(rows[~goes_left])", "open_leaf(rows[~goes_left]), open_leaf(rows[goes_left])\n            self.nodes[number].children = self.nodes[number].children[::-1]"))
wrong(TREE, "candidates not sorted", ("np.sort(rng.choice(len(candidates), size=self.n_candidates, replace=False))", "rng.choice(len(candidates), size=self.n_candidates, replace=False)"))
FOREST = "localexp/trees.py::RandomForest.fit"
wrong(FOREST, "all cases vote", ("np.setdiff1d(np.arange(len(labels)), rows)", "np.arange(len(labels))"))
wrong(FOREST, "error over all cases", ("judged = np.flatnonzero(np.any(votes > 0.0, axis=1))", "judged = np.arange(len(labels))"))
wrong(FOREST, "half of the features", ("int(np.sqrt(features.shape[1]))", "max(1, features.shape[1] // 3)"))
PF = "localexp/parzen.py::ParzenWindows.fit"
wrong(PF, "each case helps itself", ("        np.fill_diagonal(squares, np.inf)\n", ""))
wrong(PF, "estimates not cut", ("np.clip(windows @ self.decisions / np.sum(windows, axis=1), 1e-3, 1.0 - 1e-3)", "np.clip(windows @ self.decisions / np.sum(windows, axis=1), 1e-9, 1.0 - 1e-9)"))
wrong(PF, "median over all entries", ("squares[np.triu_indices(len(squares), 1)]", "squares"))
wrong(PF, "median of distances", ("np.median(squares[np.triu_indices(len(squares), 1)])", "np.median(np.sqrt(squares[np.triu_indices(len(squares), 1)])) ** 2"))
PE = "localexp/parzen.py::ParzenWindows.explain"
wrong(PE, "gradient without the width", (" / self.width**2\n        present", "\n        present"))
wrong(PE, "largest contributions", ("np.argsort(-np.abs(gradient[present])", "np.argsort(-np.abs(gradient[present] * instance[present])"))
wrong(PE, "gradient for the contribution", ("np.multiply(gradient[chosen], instance[chosen])", "gradient[chosen]"))
WP = "localexp/domains.py::Words.perturb"
wrong(WP, "never all words", ("rng.integers(1, len(present) + 1,", "rng.integers(1, len(present),"))
wrong(WP, "largest are removed", ("ranks = np.argsort(np.argsort(lots, axis=1), axis=1)", "ranks = np.argsort(np.argsort(-lots, axis=1), axis=1)"))
wrong(WP, "order for ranks", ("np.argsort(np.argsort(lots, axis=1), axis=1)", "np.argsort(lots, axis=1)"))
QF = "localexp/domains.py::Quartiles.fit"
wrong(QF, "sample deviation", ("np.std(members)", "np.std(members, ddof=1) if len(members) > 1 else 0.0"))
wrong(QF, "nearest values", ("[0.25, 0.5, 0.75], axis=0)", "[0.25, 0.5, 0.75], axis=0, method=\"hazen\")"))
QP = "localexp/domains.py::Quartiles.perturb"
wrong(QP, "not cut", ("drawn = np.clip(drawn, self.lows[codes, columns], self.highs[codes, columns])", "pass"))
wrong(QP, "noise first", ("rng.random(shape), rng.standard_normal(shape)", "*(rng.standard_normal(shape), rng.random(shape))[::-1]"))
wrong(QP, "equal quarters", ("np.cumsum(self.shares, axis=0)[:3, np.newaxis]", "np.broadcast_to(np.array([0.25, 0.5, 0.75])[:, None, None], (3, 1, shape[1]))"))
RIDGE = "localexp/selection.py::weighted_ridge"
wrong(RIDGE, "weights scaled", ("weights[:, np.newaxis] * centred", "shares[:, np.newaxis] * centred"), ("np.multiply(weights, lifted)", "np.multiply(shares, lifted)"))
wrong(RIDGE, "intercept penalised", ("np.subtract(targets, level)", "np.subtract(targets, 0.0)"))
wrong(RIDGE, "unweighted score", ("total = float(np.dot(shares, np.square(lifted)))", "total = float(np.mean(np.square(lifted)))"))
wrong(RIDGE, "constant targets score 1", ("else 0.0", "else 1.0"))
FWD = "localexp/selection.py::forward_selection"
wrong(FWD, "last of equal ones", ("score >= worth + 1e-9", "score >= worth - 1e-9"))
wrong(FWD, "sorted", ("return np.asarray(chosen)", "return np.sort(chosen)"))
wrong(FWD, "without a penalty", ("weighted_ridge(columns, targets, weights)[2]", "weighted_ridge(columns, targets, weights, 1e-9)[2]"))
LE = "localexp/explainers.py::LocalExplainer.explain"
wrong(LE, "cosine distance squared twice", ("1.0 - np.sqrt(shares)", "1.0 - shares"))
wrong(LE, "width not squared", ("np.exp(-np.square(gaps / self.width))", "np.exp(-np.square(gaps) / self.width)"))
wrong(LE, "order of the parts", ('np.argsort(-np.abs(coefficients), kind="stable")', "np.arange(len(coefficients))"))
wrong(LE, "largest first, with sign", ("-np.abs(coefficients)", "-coefficients"))
wrong(LE, "default penalty", ("targets, weights, self.penalty)", "targets, weights)"))
GR = "localexp/explainers.py::greedy_explanation"
wrong(GR, "stops before the change", ("side * (level - 0.5) > 0.0", "side * (level - 0.5) > 0.1"))
wrong(GR, "last on ties", ("np.argmax(support < np.min(support) + 1e-9)", "len(support) - 1 - np.argmax((support < np.min(support) + 1e-9)[::-1])"))
wrong(GR, "contribution of class 1 to the first", ("effects.append(level - side * float(support[best]))\n        level -= effects[-1]", "effects.append(first - side * float(support[best]))\n        level = side * float(support[best])"))
wrong("localexp/users.py::mistrusts", "predicted for local", ("remainder = explanation.local - ", "remainder = 0.5 - "))
wrong("localexp/users.py::mistrusts", "at least one half", ("remainder > 0.5", "remainder >= 0.5"))
wrong("localexp/users.py::mistrusts", "any for all", ("np.any(doubtful)", "np.all(doubtful)"))
wrong("localexp/users.py::choose_classifier", "all artifacts known", ("np.intersect1d(shown, artifacts)", "artifacts"))
wrong("localexp/users.py::choose_classifier", "seen ones only", ("mistrusts(explanations, recognised", "mistrusts([explanations[row] for row in rows], recognised"))
wrong("localexp/users.py::choose_classifier", "first one on equal counts", ("0.5 * (1.0 + np.sign(counts[0] - counts[1]))", "float(counts[0] > counts[1])"))
wrong("localexp/metrics.py::agreement", "precision 1 without claims", ('hits / max(claimed, 1.0)', '(hits / claimed if claimed else 1.0)'))
wrong("localexp/metrics.py::agreement", "kappa 1 without chance", ("if chance < 1.0 else 0.0", "if chance < 1.0 else 1.0"))
wrong("localexp/metrics.py::stability", "population deviation", (", ddof=1", ""))
wrong("localexp/metrics.py::stability", "over the mean", ("np.mean(np.abs(weights))", "np.abs(np.mean(weights))"))
wrong("localexp/metrics.py::stability", "overlap with the smaller", ("len(np.union1d(first.features, second.features))", "min(len(first.features), len(second.features))"))
