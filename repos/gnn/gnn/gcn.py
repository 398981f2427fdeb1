import numpy as np


class GCN:
    """softmax(A relu(A X W0) W1), inverted dropout before both layers, Adam."""

    def __init__(self, inputs, hidden, outputs, rng):
        self.weights = [self.glorot(rng, inputs, hidden), self.glorot(rng, hidden, outputs)]
        self.first = [np.zeros_like(w) for w in self.weights]
        self.second = [np.zeros_like(w) for w in self.weights]
        self.steps = 0

    @staticmethod
    def glorot(rng, rows, columns):
        bound = np.sqrt(6 / (rows + columns))
        return rng.uniform(-bound, bound, (rows, columns))

    def forward(self, a, x, rng=None, dropout=0.0):
        keep = 1.0 - dropout
        m0 = rng.random(x.shape) < keep if rng is not None and dropout else np.ones_like(x)
        x = x * m0 / keep if rng is not None else x
        hidden = a @ (x @ self.weights[0])
        active = np.maximum(hidden, 0)
        m1 = rng.random(active.shape) < keep if rng is not None and dropout else np.ones_like(active)
        dropped = active * m1 / keep if rng is not None else active
        scores = a @ (dropped @ self.weights[1])
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return x, hidden, m1, dropped, scores / scores.sum(axis=1, keepdims=True)

    def step(self, a, x, labels, rows, rate, decay, rng, dropout):
        x, hidden, m1, dropped, probs = self.forward(a, x, rng, dropout)
        loss = -np.log(probs[rows, labels[rows]] + 1e-12).mean()
        error = np.zeros_like(probs)
        error[rows] = probs[rows]
        error[rows, labels[rows]] -= 1
        error /= len(rows)
        back = a.T @ error
        g1 = dropped.T @ back
        gh = (back @ self.weights[1].T) * m1 / (1.0 - dropout) * (hidden > 0)
        g0 = x.T @ (a.T @ gh) + decay * self.weights[0]
        self.adam([g0, g1], rate)
        return loss

    def adam(self, grads, rate):
        self.steps += 1
        for w, g, m, v in zip(self.weights, grads, self.first, self.second):
            m += 0.1 * (g - m)
            v += 0.001 * (g**2 - v)
            w -= rate * (m / (1 - 0.9**self.steps)) / (np.sqrt(v / (1 - 0.999**self.steps)) + 1e-8)

    def predict(self, a, x):
        return self.forward(a, x)[-1].argmax(axis=1)
