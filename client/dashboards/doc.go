// Package dashboards has the dashboards of Antipode: one description in Go (Dashboards), written as Grafana reads it (JSON, in
// the folder deploy/grafana/dashboards) and as a page in itself (Page), for those who have no Grafana.
//
// Invariant: both show the same queries, and no panel shows a metric that the servers do not have. TestNoPanelIsEmpty runs every
// query against a Prometheus that scrapes a deployment under load, and demands an answer of each.
package dashboards
