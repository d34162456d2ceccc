// promtool and the Pushgateway, which check the metrics of reports, of the server and of pushes.
module kube-assay/tests/prometheus

go 1.26.0

tool (
	github.com/prometheus/prometheus/cmd/promtool
	github.com/prometheus/pushgateway
)

require (
	github.com/prometheus/prometheus v0.312.0
	github.com/prometheus/pushgateway v1.11.2
)
