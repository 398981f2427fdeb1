# replaces: deps
print("nothing to install")
