# replaces: deps
print("installed")
