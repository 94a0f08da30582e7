print("saltern")
