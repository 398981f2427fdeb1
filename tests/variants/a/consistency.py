"""Wrong variants of the consistency paper's functions."""

BR = "consistency/graph.py::bridge_components"
right(BR, "joined to point 0's, which gives the same tree", ("lengths = np.where(apart, distances, np.inf)", "home = component == component[0]\n        lengths = np.where(np.logical_xor.outer(home, home), distances, np.inf)"))
wrong(BR, "mask of the caller", ("mask = np.array(mask)", "mask = np.asarray(mask)"))
wrong(BR, "one direction", ("mask[row, column] = mask[column, row] = True", "mask[row, column] = True"))
wrong(BR, "each component to its nearest", "mask = np.array(mask)\ncomponent = connected_components(mask)\nbridges = 0\nfor number in range(1, int(np.max(component)) + 1):\n    inside = component == number\n    lengths = np.where(np.logical_and.outer(inside, component < number), distances, np.inf)\n    row, column = np.unravel_index(np.argmin(lengths), lengths.shape)\n    mask[row, column] = mask[column, row] = True\n    bridges += 1\nreturn mask, bridges")
LAN = "consistency/solvers.py::lanczos"
wrong(LAN, "orthogonal to the last two only", ("known = np.column_stack(basis)", "known = np.column_stack(basis[-2:])"))
wrong(LAN, "smallest eigenvalues", ('np.argsort(-values, kind="stable")', 'np.argsort(values, kind="stable")'))
wrong(LAN, "largest in size", ("np.argsort(-values", "np.argsort(-np.abs(values)"))
wrong(LAN, "start not scaled", ("start / np.linalg.norm(start)", "start"))
wrong(LAN, "one step fewer", ("while len(images) < n_steps:", "while len(images) < n_steps - 1:"))
SVM = "consistency/models.py::KernelMachine.train"
wrong(SVM, "no upper bound", ("0.0, self.cost)", "0.0, np.inf)"))
wrong(SVM, "no lower bound", ("0.0, self.cost)", "-self.cost, self.cost)"))
wrong(SVM, "all multipliers at once", ("                values += np.multiply(move * sign, kernel[index])\n", ""), ("            for index, sign in enumerate(signs):\n", "            values = kernel @ (multipliers * signs)\n            for index, sign in enumerate(signs):\n"))
wrong(SVM, "sum of moves", ("furthest = max(furthest, abs(move))", "furthest += abs(move)"))
FP = "consistency/solvers.py::fixed_point"
wrong(FP, "relative to the old value", ("largest = np.max(np.abs(spread))", "largest = np.max(np.abs(scores))"))
wrong(FP, "absolute change", (" / largest))", "))"))
wrong(FP, "from zero", ("scores = np.array(targets, dtype=float)", "scores = np.zeros(targets.shape)"))
wrong(FP, "the value before", ("        scores = spread\n        if changes[-1] <= tolerance:\n            break\n", "        if changes[-1] <= tolerance:\n            break\n        scores = spread\n"))
REP = "consistency/metrics.py::class_report"
wrong(REP, "only classes with members", ("np.mean(recall)", "np.mean(recall[members > 0])"))
wrong(REP, "F1 only of classes that occur", ("np.mean(f1)", "np.mean(f1[members + claims > 0])"))
wrong(REP, "classes of hidden points", ("int(max(np.max(truth), np.max(predicted))) + 1", "int(max(np.max(truth[hidden]), np.max(predicted[hidden]))) + 1"))
wrong(REP, "all points", ("np.less(partial, 0)", "np.ones(len(partial), dtype=bool)"))
CH = "consistency/solvers.py::chebyshev"
wrong(CH, "weights from the start", ("if len(changes) == 1 else", "if len(changes) == 2 else"))
wrong(CH, "fixed weight", ("4.0 / (4.0 - alpha**2 * weight)", "weight"))
CG = "consistency/solvers.py::conjugate_gradients"
wrong(CG, "one step length for all", ("step = np.divide(power, np.sum(direction * image, axis=0))", "step = np.sum(power) / np.sum(direction * image)"))
wrong(CG, "steepest descent", ("residual + (latest / power) * direction", "residual"))
wrong(CG, "norm over all columns", ("np.sqrt(np.max(latest / reference))", "np.sqrt(np.sum(latest) / np.sum(reference))"))
SUB = "consistency/sampling.py::stratified_subset"
wrong(SUB, "highest class on ties", ('np.argsort(-remainders, kind="stable")', 'np.argsort(remainders, kind="stable")[::-1]'))
wrong(SUB, "rounded", ("    left_over = size - int(np.sum(places))\n", "    left_over = 0\n    places = np.rint(size * sizes / len(labels)).astype(int)\n"))
wrong("consistency/sampling.py::draw_labelled", "last member of each class", ("_, first = np.unique(labels[order], return_index=True)", "_, first = np.unique(labels[order][::-1], return_index=True)\n    first = len(order) - 1 - first"))
wrong("consistency/synthetic.py::two_moons", "floor", ("(n_points + 1) // 2", "n_points // 2"))
wrong("consistency/synthetic.py::two_moons", "circle around (1, -0.5)", ("0.5 - np.sin(angles)", "-0.5 - np.sin(angles)"))
wrong("consistency/synthetic.py::TopicCorpus.sample", "common language first", ("languages[topic] + (1.0 - share) * languages[-1]", "languages[topic + 1] + (1.0 - share) * languages[0]"))
wrong("consistency/synthetic.py::TopicCorpus.sample", "shares exchanged", ("share * languages[topic] + (1.0 - share) * languages[-1]", "(1.0 - share) * languages[topic] + share * languages[-1]"))
TF = "consistency/synthetic.py::tfidf"
wrong(TF, "half itself is too many", ("np.less_equal(", "np.less("))
wrong(TF, "more than the fewest", ("np.greater_equal(", "np.greater("))
wrong(TF, "smoothed", ("np.log(n_documents / containing[kept])", "np.log((1 + n_documents) / (1 + containing[kept]))"))
LW = "consistency/graph.py::local_width.weigh"
wrong(LW, "itself a neighbour", ("        np.fill_diagonal(others, np.inf)\n", ""))
wrong(LW, "halved", ("np.exp(-np.square(distances) / widths)", "np.exp(-np.square(distances) / (2.0 * widths))"))
wrong(LW, "other places only", ("np.fill_diagonal(others, np.inf)", "others[others == 0.0] = np.inf"))
NO = "consistency/graph.py::normalise"
wrong(NO, "column sums", ("np.sum(weights, axis=1)", "np.sum(weights, axis=0)"))
wrong(NO, "row and column exchanged", ('"row": (1.0, 0.0), "column": (0.0, 1.0)', '"row": (0.0, 1.0), "column": (1.0, 0.0)'))
wrong(NO, "degree plus epsilon", ("np.where(alive, degrees, 1.0)", "degrees + 1e-3"))
CM = "consistency/labels.py::class_mass_normalise"
wrong(CM, "no one added", ("minlength=scores.shape[1]) + 1.0", "minlength=scores.shape[1]) + 0.0"))
wrong(CM, "mass of all points", ("np.sum(np.compress(partial < 0, scores, axis=0), axis=0)", "np.sum(scores, axis=0)"))
wrong(CM, "rows not divided", ("return np.divide(scaled, totals, out=scaled, where=totals > 0)", "return scaled"))
EX = "consistency/models.py::Consistency.extend"
wrong(EX, "row normalisation", ("np.sqrt(own * degrees)", "own * np.ones(len(degrees))"))
wrong(EX, "all points", ("if builder.neighbours is not None:", "if False:"))
wrong(EX, "without alpha", ("self.alpha * np.dot", "np.dot"))
wrong(EX, "own weights over all points", ("own = np.sum(ties, axis=1, keepdims=True)", "own = np.sum(builder.weigh(builder.distances(fresh, points.features)), axis=1, keepdims=True)"))
wrong("consistency/models.py::HarmonicFields.score", "degrees among the unlabelled", ("degrees = np.sum(points.weights, axis=1)", "degrees = np.sum(points.weights[:, unknown], axis=1)"))
wrong("consistency/models.py::HarmonicFields.score", "mass always", ("if self.mass else scores", "if not self.mass else scores"))
CP = "consistency/models.py::ClampedPropagation.score"
wrong(CP, "from zero", ("        scores[free] = np.sum(targets, axis=0) / np.sum(targets)\n", ""))
wrong(CP, "largest change", ("np.mean(np.sum(np.abs(spread[free] - scores[free]), axis=1))", "np.max(np.abs(spread[free] - scores[free]))"))
wrong(CP, "labels not put back", ("scores[free] = spread[free]", "scores = spread"))
EI = "consistency/models.py::Eigenspace.score"
wrong(EI, "one more", ("n_pairs = min(wanted, self.n_steps)", "n_pairs = min(wanted + 1, self.n_steps)"))
wrong(EI, "with intercept", ("np.linalg.lstsq(np.take(vectors, known, axis=0), np.take(targets, known, axis=0), rcond=None)", "np.linalg.lstsq(np.take(vectors, known, axis=0), np.take(targets, known, axis=0) - np.mean(targets[known], axis=0), rcond=None)"))
NN = "consistency/models.py::NearestNeighbours.score"
wrong(NN, "equal votes", ("loudness = np.divide(distances[:, -1:] - distances, spans, out=np.ones_like(distances), where=spans > 0)", "loudness = np.ones_like(distances)"))
wrong(NN, "inverse distances", ("np.divide(distances[:, -1:] - distances, spans, out=np.ones_like(distances), where=spans > 0)", "1.0 / (1e-9 + distances)"))
wrong(NN, "higher index on ties", ('np.argsort(gaps, axis=1, kind="stable")', 'gaps.shape[1] - 1 - np.argsort(gaps[:, ::-1], axis=1, kind="stable")'))
EN = "consistency/theory.py::energy_terms"
wrong(EN, "each edge once", ("0.5 * float(np.sum(np.multiply(weights, squares)))", "0.25 * float(np.sum(np.multiply(weights, squares)))"))
wrong(EN, "labelled points only", ("np.sum(np.square(scores - label_matrix(partial)))", "np.sum(np.square(scores - label_matrix(partial))[partial >= 0])"))
LOO = "consistency/theory.py::leave_one_out"
wrong(LOO, "own label kept", ("    np.fill_diagonal(influence, 0.0)\n", ""))
wrong(LOO, "also equal", ("np.less(own", "np.less_equal(own"))
wrong(LOO, "cut at 1e-12", ("1e-6)", "1e-12)"))
CU = "consistency/metrics.py::summarise_curve"
wrong(CU, "deviation", (" / np.sqrt(len(errors))", ""))
wrong(CU, "linear axis", ("np.log(np.asarray(counts, dtype=float))", "np.asarray(counts, dtype=float)"))
wrong(CU, "not divided", ("np.dot(gaps, middles) / np.sum(gaps)", "np.dot(gaps, middles)"))
PC = "consistency/metrics.py::paired_comparison"
wrong(PC, "ties not counted", ("(wins + 0.5 * (len(gaps) - throws))", "wins"))
wrong(PC, "one-sided", ("2.0 * tail", "tail"))
wrong(PC, "ties as throws", ("wins + losses, min(wins, losses)", "len(gaps), min(wins, losses)"))
wrong(PC, "population deviation", (", ddof=1", ""))
