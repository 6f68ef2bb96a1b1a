"""Keeps a run going for a person to play with: send more notices, look around."""

import base64
import select
import sys
import time
from pathlib import Path
from typing import TextIO

import yaml

from local import scene
from local.console import Console
from local.kubernetes import Happening
from local.kubernetes.offers import CAPACITY_LABEL
from local.kubernetes.resources import NODES
from local.narrator import Narrator
from local.recording import State
from local.scene import Scene
from local.slack.stand_in import Message
from local.stage import BUILD, Stage
from local.watch import instance_id, sightings

_LOOK_EVERY_SECONDS = 0.2
_COMMANDS = """\
  nodes            what stands where
  notice <node>    a notice for a spot node; its instance goes in two minutes
  node             one more spot node
  Ctrl-C           end everything, and clean up"""


def play(stage: Stage, console: Console, stream: TextIO = sys.stdin) -> None:
    """Print where everything is, and do what is typed, until Ctrl-C (KeyboardInterrupt)."""
    kubeconfig = BUILD / "demo-kubeconfig.yaml"
    _write_kubeconfig(kubeconfig, stage)
    try:
        _explain(stage, console, kubeconfig)
        player = Player(stage, console)
        with stage.heard_by(player):
            _obey(player, stream)
    finally:
        kubeconfig.unlink(missing_ok=True)


def _obey(player: "Player", stream: TextIO) -> None:
    typing = True
    while True:
        player.look()
        # After the end of input there is nobody to type, but things still happen.
        if not typing:
            time.sleep(_LOOK_EVERY_SECONDS)
        elif select.select([stream], [], [], _LOOK_EVERY_SECONDS)[0]:
            line = stream.readline()
            typing = bool(line)
            player.obey(line)


class Player:
    """Does what is typed, and tells what comes of it."""

    def __init__(self, stage: Stage, console: Console) -> None:
        self._stage = stage
        self._console = console
        # One for each notice; the last one hears what happens.
        self._narrators: list[Narrator] = []

    def happened(self, happening: Happening) -> None:
        """Something happened in the cluster."""
        for narrator in self._narrators[-1:]:
            narrator.happened(happening)

    def posted(self, message: Message) -> None:
        """Slack accepted a message."""
        for narrator in self._narrators[-1:]:
            narrator.posted(message)

    def look(self) -> None:
        """Tell what is new."""
        for narrator in self._narrators:
            narrator.look()

    def obey(self, line: str) -> None:
        """Do what one line says."""
        match line.split():
            case ["nodes"]:
                self._show_nodes()
            case ["notice", node]:
                self._give_notice(node)
            case ["node"]:
                self._add_node()
            case []:
                pass
            case _:
                self._console.line(_COMMANDS)

    def _show_nodes(self) -> None:
        there = sightings(self._stage.store)
        for node in (one for one in there if one.kind == "node"):
            pods = sum(pod.kind == "pod" and pod.place == node.name for pod in there)
            state = "" if node.state is State.READY else f", {node.state.value}"
            self._console.line(f"  {node.name}  {node.place}  {node.instance}  {pods} pods{state}")

    def _give_notice(self, name: str) -> None:
        found = self._stage.store.find(NODES, name)
        if found is None:
            self._console.line(f"  there is no node {name}; `nodes` lists them")
            return
        if found["metadata"]["labels"].get(CAPACITY_LABEL) != "spot":
            self._console.line(f"  {name} is no spot node: AWS does not take it away")
            return
        whom = Scene(node=name, instance=instance_id(found))
        if not scene.has_instance(self._stage.client("ec2"), whom.instance):
            self._console.line(f"  {name} came later and has no instance in EC2; `node` adds one")
            return
        for earlier in self._narrators:
            if earlier.instance == whom.instance:
                self._console.line("  the same notice once more: nothing should come of it")
                earlier.send()
                return
        narrator = Narrator(self._stage, self._console, whom, self._stage.clock())
        self._narrators.append(narrator)
        narrator.give_notice()

    def _add_node(self) -> None:
        instance = scene.run_instance(self._stage.client("ec2"), scene.SPOT_POOL)
        node = self._stage.machines.add_node(scene.SPOT_POOL, instance_id=instance)
        self._console.line(f"  {node['metadata']['name']} is there, with instance {instance}")


def _explain(stage: Stage, console: Console, kubeconfig: Path) -> None:
    console.heading("Everything keeps running")
    console.line(f"  Kubernetes   KUBECONFIG={kubeconfig} kubectl get nodes")
    console.line(f"  AWS          AWS_ENDPOINT_URL={stage.aws.url} AWS_REGION={scene.REGION}")
    console.line("               AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test")
    console.line(f"  Slack        {stage.slack.url} (what it accepts is printed here)")
    console.line()
    console.line("Type:")
    console.line(_COMMANDS)


def _write_kubeconfig(path: Path, stage: Stage) -> None:
    """With a token for everything: the file is the user's alone, and goes with the run."""
    ca_data = base64.b64encode(stage.kubernetes.ca_pem.encode()).decode()
    cluster = {"server": stage.kubernetes.url, "certificate-authority-data": ca_data}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": scene.CLUSTER,
        "clusters": [{"name": scene.CLUSTER, "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": stage.admin_token}}],
        "contexts": [
            {"name": scene.CLUSTER, "context": {"cluster": scene.CLUSTER, "user": "admin"}}
        ],
    }
    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
