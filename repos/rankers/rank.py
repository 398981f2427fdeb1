import argparse
import json
import time

from rankers.evaluation import ndcg_cut, read_qrels, read_run, write_run
from rankers.index import Index
from rankers.models import build
from rankers.text import load_documents, load_queries


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.json")
    parser.add_argument("--cut", type=int, default=20)
    args = parser.parse_args()
    with open(args.config) as f:
        config = json.load(f)

    documents = load_documents(config["documents"])
    queries = load_queries(config["queries"])
    if config["max_queries"]:
        queries = dict(list(queries.items())[: config["max_queries"]])
    print("loaded %d documents, %d queries" % (len(documents), len(queries)), flush=True)
    judged = read_qrels(config["qrels"])
    print("judgements for %d queries" % len(judged), flush=True)

    start = time.time()
    index = Index(documents)
    print("index: %d stems, %.1f tokens a document, %.0f s" % (len(index.postings), index.average, time.time() - start))
    print("BM25 k1=%.2f b=%.2f" % (config["bm25"]["k1"], config["bm25"]["b"]))

    results = {}
    for name, model in build(config).items():
        rankings = {query: index.search(text, model, config["depth"]) for query, text in queries.items()}
        write_run(config["runs"], name, rankings)
        results[name] = ndcg_cut(read_run(config["runs"], name), judged, args.cut)
        print("%s ndcg_cut_%d %.4f" % (name, args.cut, results[name]), flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
