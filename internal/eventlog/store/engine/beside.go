package engine

import "github.com/signet-idm/signet/internal/eventlog/event"

const insertToken = "INSERT INTO tokens (hash, id, kind, name, user_id, epoch, org_epoch, created, expires, session, client, family, data, provider) " +
	"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

const InsertGrouping = "INSERT INTO groupings (name, object_id) VALUES (?, ?) ON CONFLICT DO NOTHING"

const (
	insertWord = "INSERT INTO words (object_id, word, org_id) SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM meta WHERE name = '" + WordBlocksRow + "') ON CONFLICT DO NOTHING"
	deleteWord = "DELETE FROM words WHERE object_id = ? AND word = ?"
)

// orReplace ends a statement that inserts rows of side tables, whether or not they are there.
const orReplace = " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires"

func insertRow(table event.SideTable, ending string) string {
	return "INSERT INTO " + string(table) + " (key, value, expires) VALUES (?, ?, ?)" + ending
}

// insertEach inserts rows of side tables one by one.
func insertEach(rows []event.Row, ending string, exec func(sql string, args ...any) error) error {
	for _, r := range rows {
		if err := exec(insertRow(r.Table, ending), r.Key, r.Value, r.Expires); err != nil {
			return err
		}
	}
	return nil
}

// writeBeside writes rows, groups and tokens, in the same order on both engines. Rows that were looked for and absent
// are plainly inserted: where another node was faster, that fails, and the batch decides again. insert takes rows in
// order of their keys.
func writeBeside(c *event.Changes, insert func(rows []event.Row, ending string) error,
	exec func(sql string, args ...any) error) error {
	if err := insert(c.Inserted, ""); err != nil {
		return err
	}
	for _, r := range c.Updates {
		if err := exec("UPDATE "+string(r.Table)+" SET value = ?, expires = ? WHERE key = ?", r.Value, r.Expires,
			r.Key); err != nil {
			return err
		}
	}
	if err := insert(c.Put, orReplace); err != nil {
		return err
	}
	for _, k := range c.Dropped {
		if err := exec("DELETE FROM "+string(k.Table)+" WHERE key = ?", k.Key); err != nil {
			return err
		}
	}
	for _, g := range c.Left {
		if err := exec("DELETE FROM groupings WHERE name = ? AND object_id = ?", g.Group, g.ObjectID); err != nil {
			return err
		}
	}
	for _, g := range c.Joined {
		if err := exec(InsertGrouping, g.Group, g.ObjectID); err != nil {
			return err
		}
	}
	for _, t := range c.Tokens {
		var err error
		switch {
		case t.Put != nil:
			err = exec(insertToken, tokenValues(t.Put)...)
		case t.Advance != nil:
			err = exec("UPDATE tokens SET epoch = ? WHERE id = ? AND epoch = ?", t.Advance.To, t.Advance.ID,
				t.Advance.From)
		case t.Extend != nil:
			err = exec("UPDATE tokens SET expires = ? WHERE id = ? AND expires < ?", t.Extend.Expires, t.Extend.ID,
				t.Extend.Expires)
		case t.Update != nil:
			err = exec("UPDATE tokens SET hash = ?, data = ? WHERE id = ?", t.Update.Hash, t.Update.Data, t.Update.ID)
		case t.DropFamily != "":
			err = exec("DELETE FROM tokens WHERE family <> '' AND family = ?", t.DropFamily)
		case t.DropClient != nil:
			err = exec("DELETE FROM tokens WHERE user_id = ? AND client = ?", t.DropClient.UserID, t.DropClient.Client)
		case t.DropUser != "":
			err = exec("DELETE FROM tokens WHERE user_id = ?", t.DropUser)
		default:
			err = exec("DELETE FROM tokens WHERE id = ?", t.Drop)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
