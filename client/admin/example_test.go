package admin_test

import (
	"fmt"

	"antipode/client/admin"
)

func ExampleConnectionString() {
	a := admin.AccountInfo{
		Account: admin.Account{Name: "pictures"},
		Endpoints: []admin.Endpoint{{
			Service:   "table",
			Primary:   "http://127.0.0.1:10002/pictures",
			Secondary: "http://127.0.0.1:10002/pictures-secondary",
		}},
	}
	fmt.Println(admin.ConnectionString(a, admin.Keys{Key1: "a2V5"}))
	// Output:
	// DefaultEndpointsProtocol=http;AccountName=pictures;AccountKey=a2V5;TableEndpoint=http://127.0.0.1:10002/pictures;TableSecondaryEndpoint=http://127.0.0.1:10002/pictures-secondary;
}
