#!/usr/bin/env bash
# From an empty cluster to an installed, upgraded and removed operator, and to a clean cluster, as a pipeline does it: every command
# must succeed, there is no terminal, and results are read from JSON. Needs kubectl with the plugins on PATH, and jq.
#
#   tests/pipeline.sh FOLDER    FOLDER is for the log of the controllers
set -euo pipefail

folder=$1
market=market=tests/quickstart/catalogs/market

kubectl olm install --crds-only -o json | jq -e '.items | length == 9' >/dev/null
kubectl olm run --catalog "$market" >"$folder/controllers.log" 2>&1 &
controllers=$!
trap 'kill "$controllers" 2>/dev/null || true' EXIT
trap 'echo "line $LINENO failed" >&2' ERR

installed=$(kubectl olm operator install tea-house@1.0.0 -n shop --create-namespace --catalog "$market" --yes --timeout 5m -o json |
  jq -er '.items[] | select(.kind == "Subscription") | .status.installedCSV')
test "$installed" = tea-house.v1.0.0

kubectl olm operator wait tea-house -n shop --for upgradable --timeout 5m -o json | jq -e '.operator.health == "Upgradable"' >/dev/null
outdated=$(kubectl olm operator outdated -A --catalog "$market" -o json |
  jq -er '[.items[] | "\(.metadata.namespace)/\(.metadata.name) \(.installed) \(.latest) \(.safe)"] | join(",")')
test "$outdated" = "shop/tea-house 1.0.0 1.1.0 yes"

kubectl olm operator upgrade --all -A --catalog "$market" --yes --timeout 5m -o json |
  jq -e '[.operators[] | select(.result == "Upgraded") | .reached[]] == ["1.1.0"]' >/dev/null
kubectl olm operator list -A -o json | jq -e 'all(.items[]; .health == "Healthy")' >/dev/null

kubectl olm operator uninstall tea-house -n shop --delete-crds --backup "$folder/backup" --yes -o json |
  jq -e '.left == [] and .dependencies != []' >/dev/null
dependency=$(kubectl get subscriptions -n shop -o json | jq -er '.items | .[0].metadata.name')
kubectl olm operator uninstall "$dependency" -n shop --delete-crds --yes -o json | jq -e '.left == []' >/dev/null

kill "$controllers"
wait "$controllers" || true
kubectl delete namespace shop --timeout=2m >/dev/null
# Not Operator objects: running controllers create them again while objects with their label are still being deleted.
left=$(kubectl get clusterroles,clusterrolebindings,customresourcedefinitions,csv -A -o json |
  jq -r '.items[] | select(.metadata.name | test("tea|samovar|kettle|shop")) | .metadata.name')
test -z "$left" || { echo "left: $left" >&2; exit 1; }
echo clean
