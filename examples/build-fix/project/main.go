// Command shop prints an invoice.
package main

import (
	"fmt"

	"example.com/shop/invoice"
)

func main() {
	lines := []invoice.Line{{Name: "pen", Quantity: 3, Price: 150}, {Name: "ink", Quantity: 1, Price: 999}}
	fmt.Println(invoice.Format(invoice.Total(lines, 10)))
}
