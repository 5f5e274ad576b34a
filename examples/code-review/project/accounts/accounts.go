// Package accounts finds the accounts of a shop's customers.
package accounts

import (
	"context"
	"database/sql"
	"fmt"
)

// An Account is a row of the table accounts.
type Account struct {
	ID    int64
	Email string
}

// Find returns the accounts whose address begins with a prefix.
func Find(ctx context.Context, db *sql.DB, prefix string) ([]Account, error) {
	rows, err := db.QueryContext(ctx, "SELECT id, email FROM accounts WHERE substr(email, 1, length(?1)) = ?1 ORDER BY id", prefix)
	if err != nil {
		return nil, fmt.Errorf("find accounts: %w", err)
	}
	defer rows.Close()
	var found []Account
	for rows.Next() {
		var a Account
		if err := rows.Scan(&a.ID, &a.Email); err != nil {
			return nil, fmt.Errorf("find accounts: %w", err)
		}
		found = append(found, a)
	}
	return found, rows.Err()
}
