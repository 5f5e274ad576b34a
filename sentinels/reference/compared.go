package reference

import "strings"

// A Comparison is two operands of a condition and the operator between them: ===, !==, ==
// or !=, or one of <, <=, > and >=.
type Comparison struct{ Left, Operator, Right string }

// ComparedIn returns the comparisons whose result a condition tests. As [TestedIn], it
// returns nothing for a source that needs a JavaScript parser: it is used for warnings only.
func ComparedIn(source string) []Comparison {
	return comparisonsIn(source, "!==", "===", "!=", "==")
}

// OrderedIn is ComparedIn for the operators <, <=, > and >=.
func OrderedIn(source string) []Comparison { return comparisonsIn(source, "<=", ">=", "<", ">") }

func comparisonsIn(source string, operators ...string) []Comparison {
	if strings.ContainsAny(source, "`/\\;{}") || strings.Contains(source, "=>") {
		return nil
	}
	var list []Comparison
	for _, operand := range truthOperands(source, nil, 0) {
		for _, operator := range operators {
			if left, right, ok := cutOperator(operand, operator); ok {
				list = append(list, Comparison{strings.TrimSpace(left), operator, strings.TrimSpace(right)})
				break
			}
		}
	}
	return list
}
