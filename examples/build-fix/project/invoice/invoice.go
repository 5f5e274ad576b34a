// Package invoice adds up what a customer owes.
package invoice

import "fmt"

// A Line is one position of an invoice. Prices are in cents.
type Line struct {
	Name     string
	Quantity int
	Price    int
}

// Total returns the sum of all lines in cents, after a discount in per cent.
// Half a cent is rounded up.
func Total(lines []Line, discount int) int {
	sum := 0
	for _, line := range lines {
		sum += line.Quantity * line.Prize
	}
	return sum * (100 - discount) / 100
}

// Format writes cents as euros: 1234 becomes "12.34 EUR".
func Format(cents int) string {
	return fmt.Sprintf("%d.%02d EUR", cents/100, cents%100)
}
