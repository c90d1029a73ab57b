# One pod of an Indexed Job, with the arguments of loadgen: starts a node of a Ray cluster, whose head is the pod of index 0.
# That pod also runs the command, once all PODS are there. The Job gives JOB_COMPLETION_INDEX, POD_IP, HEAD and PODS.
set -eu
start="ray start --node-ip-address=$POD_IP --num-cpus=1 --object-store-memory=200000000 --disable-usage-stats"

if [ "$JOB_COMPLETION_INDEX" != 0 ]; then
    timeout 600 sh -c "until $start --address=$HEAD:6379; do sleep 2; done"
    # The pod has done its part when the head is gone.
    while python3 -c "import socket; socket.create_connection(('$HEAD', 6379), 5)" 2>/dev/null; do sleep 2; done
    exit
fi

$start --head --port=6379 --include-dashboard=false
timeout 600 python3 -c "
import time, ray
ray.init('$POD_IP:6379', log_to_driver=False)
while sum(node['Alive'] for node in ray.nodes()) < $PODS:
    time.sleep(1)
"
exec loadgen "$@" --ray "$POD_IP:6379" --ray-nodes "$PODS"
