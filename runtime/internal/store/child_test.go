package store_test

func childMain() bool { return false }
