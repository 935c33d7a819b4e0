// Command tour is the client of the tour in docs/quickstart.md: it writes and reads one entity
// of the table "tour" with the official Go SDK, and asks for the service statistics.
//
//	go run ./docs/tour put VALUE
//	go run ./docs/tour get
//	go run ./docs/tour -secondary get
//	go run ./docs/tour -secondary put VALUE   (is refused)
//	go run ./docs/tour -secondary stats
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// The well-known development account.
const (
	account = "devstoreaccount1"
	key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

func main() {
	endpoint := flag.String("endpoint", "http://127.0.0.1:10002", "table endpoint of antipode dev")
	secondary := flag.Bool("secondary", false, "use the read-only endpoint of the account")
	flag.Parse()
	url := *endpoint + "/" + account
	if *secondary {
		url += "-secondary"
	}
	if err := run(context.Background(), url, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "tour:", short(err, *endpoint))
		os.Exit(1)
	}
}

// short is an error as the tour in docs/quickstart.md has it: an answer by its code, and without a server what to do.
func short(err error, endpoint string) error {
	var answer *azcore.ResponseError
	switch {
	case errors.As(err, &answer):
		return fmt.Errorf("%d %s", answer.StatusCode, answer.ErrorCode)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server answers at %s: start one by make run in another terminal, or give -endpoint", endpoint)
	}
	return err
}

func run(ctx context.Context, url string, args []string) error {
	cred, err := aztables.NewSharedKeyCredential(account, key)
	if err != nil {
		return err
	}
	o := &aztables.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
	service, err := aztables.NewServiceClientWithSharedKey(url, cred, o)
	if err != nil {
		return err
	}
	table := service.NewClient("tour")
	switch {
	case len(args) == 2 && args[0] == "put":
		return put(ctx, table, args[1])
	case len(args) == 1 && args[0] == "get":
		e, err := table.GetEntity(ctx, "p", "r", nil)
		if err != nil {
			return err
		}
		fmt.Println(string(e.Value))
		return nil
	case len(args) == 1 && args[0] == "stats":
		s, err := service.GetStatistics(ctx, nil)
		if err != nil {
			return err
		}
		fmt.Println("status", *s.GeoReplication.Status, "last sync time", s.GeoReplication.LastSyncTime)
		return nil
	}
	return errors.New("want put VALUE, get or stats")
}

func put(ctx context.Context, table *aztables.Client, value string) error {
	var answer *azcore.ResponseError
	_, err := table.CreateTable(ctx, nil)
	if err != nil && (!errors.As(err, &answer) || answer.ErrorCode != string(aztables.TableAlreadyExists)) {
		return err
	}
	entity, err := json.Marshal(map[string]string{"PartitionKey": "p", "RowKey": "r", "Value": value})
	if err != nil {
		return err
	}
	written, err := table.UpsertEntity(ctx, entity, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	if err != nil {
		return err
	}
	fmt.Println("written", written.ETag)
	return nil
}
