# replaces: deps
print("boruta is in the standard library")
