# replaces: deps
print("there")
