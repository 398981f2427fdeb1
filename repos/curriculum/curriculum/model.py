import numpy as np


class BagClassifier:
    """Mean of embeddings, one hidden layer, softmax. AdaGrad by hand."""

    def __init__(self, buckets, classes, rng, size=48, hidden=64):
        self.params = {
            "emb": rng.normal(0, 0.1, (buckets, size)),
            "w1": rng.normal(0, 1 / np.sqrt(size), (size, hidden)),
            "b1": np.zeros(hidden),
            "w2": rng.normal(0, 1 / np.sqrt(hidden), (hidden, classes)),
            "b2": np.zeros(classes),
        }
        self.cache = {name: np.full_like(value, 1e-8) for name, value in self.params.items()}

    def forward(self, bags):
        p = self.params
        x = np.stack([p["emb"][bag].mean(axis=0) for bag in bags])
        h = np.tanh(x @ p["w1"] + p["b1"])
        z = h @ p["w2"] + p["b2"]
        z = np.exp(z - z.max(axis=1, keepdims=True))
        return x, h, z / z.sum(axis=1, keepdims=True)

    def step(self, bags, labels, rate):
        p = self.params
        x, h, probs = self.forward(bags)
        loss = -np.log(probs[np.arange(len(labels)), labels] + 1e-12).mean()
        dz = probs.copy()
        dz[np.arange(len(labels)), labels] -= 1
        dz /= len(labels)
        dh = (dz @ p["w2"].T) * (1 - h**2)
        self.update("w2", h.T @ dz, rate)
        self.update("b2", dz.sum(axis=0), rate)
        dx = dh @ p["w1"].T
        self.update("w1", x.T @ dh, rate)
        self.update("b1", dh.sum(axis=0), rate)
        for bag, grad in zip(bags, dx):
            grad = grad / len(bag)
            rows = np.unique(bag)
            self.cache["emb"][rows] += grad**2
            p["emb"][rows] -= rate * grad / np.sqrt(self.cache["emb"][rows])
        return loss

    def update(self, name, grad, rate):
        self.cache[name] += grad**2
        self.params[name] -= rate * grad / np.sqrt(self.cache[name])

    def predict(self, bags):
        return self.forward(bags)[2].argmax(axis=1)
