// Command screens makes the screens of docs/screens.md again: it starts a cluster of processes, breaks it in one way
// after the other, and puts what antipodectl prints then into the blocks of the page. The text around the blocks is
// the page's, and stays.
//
//	go run ./docs/screens
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	bin := flag.String("bin", "bin", "folder of antipode and antipodectl")
	page := flag.String("page", "docs/screens.md", "the page")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *bin, *page); err != nil {
		fmt.Fprintln(os.Stderr, "screens:", err)
		os.Exit(1)
	}
}

// run writes the page only once all screens are there.
func run(ctx context.Context, bin, page string) (err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	d, err := start(ctx, bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	printed := map[screen]string{}
	for _, s := range scenes() {
		fmt.Println(s.title)
		if err := d.play(ctx, s, printed); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	out, err := fill(string(text), printed)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(out), 0o600)
}
