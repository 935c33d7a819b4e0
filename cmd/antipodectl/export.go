package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

// exported is what fork found export prints.
type exported struct {
	Rows    int    `json:"rows"`
	Payload uint64 `json:"payload_bytes"`
	Folder  string `json:"folder"`
}

func (t *tool) foundExport() *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:   "export LOCATION ACCOUNT --to FOLDER",
		Short: "Write the rows of an account in the lost-and-found to files",
		Long: `export writes rows.json with each row: its key and value as stored (docs/format), in base64,
and of an entity the JSON with which a client may insert it again. The payload of a blob or
block is written beside it, in one file for each row, named after the number of the row.`,
		Example: `  antipodectl fork found export southcentralus pictures --to found`,
		Args:    exactly("LOCATION", "ACCOUNT"),
		RunE: answer(t, func(ctx context.Context, args []string) (exported, error) {
			return t.exportFound(ctx, geo.Location(args[0]), geo.Account(args[1]), folder)
		}, func(w io.Writer, e exported) {
			_, _ = fmt.Fprintf(w, "%s and %s of payload are in %s\n", check.Count(e.Rows, "row"), size(e.Payload), e.Folder)
		}),
	}
	c.Flags().StringVar(&folder, "to", "", "folder that is made, and must not exist")
	return c
}

// export is an export under way: it holds one page at a time.
type export struct {
	t    *tool
	out  exported
	from geo.Location
	rows *os.File // rows.json, nil before the first page
}

func (t *tool) exportFound(ctx context.Context, l geo.Location, account geo.Account, folder string) (exported, error) {
	if folder == "" {
		return exported{}, command.Wrong(errors.New("fork found export needs --to FOLDER"))
	}
	e := &export{t: t, out: exported{Folder: folder}, from: l}
	err := t.eachFound(ctx, l, admin.FoundQuery{Account: account, Values: true}, func(rows []admin.FoundRow) error { return e.page(ctx, rows) })
	return e.out, e.end(err)
}

// page writes a page. The folder is made once the location has answered.
func (e *export) page(ctx context.Context, rows []admin.FoundRow) (err error) {
	if e.rows == nil {
		if err := os.Mkdir(e.out.Folder, 0o700); err != nil {
			return err
		}
		if e.rows, err = os.OpenFile(filepath.Join(e.out.Folder, "rows.json"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		name, _ := json.Marshal(e.from) // It is a string.
		if _, err := fmt.Fprintf(e.rows, "{\n  \"location\": %s,\n  \"rows\": [", name); err != nil {
			return err
		}
	}
	for _, r := range rows {
		n, err := e.t.exportPayload(ctx, e.from, r, filepath.Join(e.out.Folder, fmt.Sprintf("%d.payload", e.out.Rows)))
		if err != nil {
			return err
		}
		b, err := json.MarshalIndent(r, "    ", "  ")
		if err != nil {
			return err
		}
		before := ",\n    "
		if e.out.Rows == 0 {
			before = "\n    "
		}
		if _, err := e.rows.Write(append([]byte(before), b...)); err != nil {
			return err
		}
		e.out.Rows++
		e.out.Payload += n
	}
	return nil
}

// end closes rows.json after the last page, or after an error: then it ends within the list.
func (e *export) end(err error) error {
	if e.rows == nil {
		return err
	}
	if err == nil {
		_, err = e.rows.WriteString("\n  ],\n  \"more\": false\n}\n")
	}
	return errors.Join(err, e.rows.Close())
}

// exportPayload writes the payload of a row to a file, if it has any.
func (t *tool) exportPayload(ctx context.Context, l geo.Location, r admin.FoundRow, path string) (n uint64, err error) {
	if r.Chunks == 0 {
		return 0, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	for i := range r.Chunks {
		p, err := t.client.FoundPayload(ctx, l, admin.FoundChunk{Key: r.Key, Chunk: i})
		if err == nil {
			_, err = f.Write(p.Data)
		}
		if err != nil {
			return n, errors.Join(err, f.Close())
		}
		n += uint64(len(p.Data))
	}
	return n, f.Close()
}
