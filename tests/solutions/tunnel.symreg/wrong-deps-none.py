# replaces: deps
print("later")
