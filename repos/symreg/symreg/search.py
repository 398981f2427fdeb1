from gplearn.genetic import SymbolicRegressor


def build(search, workers, names):
    return SymbolicRegressor(
        population_size=search["population"],
        generations=search["generations"],
        tournament_size=search["tournament"],
        parsimony_coefficient=search["parsimony"],
        function_set=tuple(search["functions"]),
        feature_names=names,
        random_state=search["seed"],
        n_jobs=workers,
        verbose=1,
    )


def describe(model):
    program = model._program
    return {"expression": str(program), "length": int(program.length_), "depth": int(program.depth_)}
