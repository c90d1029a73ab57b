"""The image of the command as OCI archives: `python -m deploy.image` puts loadgen.oci.tar and
loadgen-ray.oci.tar into dist/, as `make image` does. It builds the Containerfile with the wheel
that is there, on a base of Debian's packages: no image is fetched. Needs mmdebstrap and buildah.
"""

import shutil
import subprocess

from deploy.wheels import DIST, ROOT
from loadgen.version import __version__

BUILD = ROOT / "build/image"
SUITE, PYTHON = "trixie", "cp313"  # of Debian, and its Python
PACKAGES = ("ca-certificates", "libstdc++6", "passwd", "python3", "python3-venv")
BASE = "localhost/loadgen-base"
# What no program here reads, a third of the base.
UNREAD = [f"/usr/share/{name}/*" for name in ("doc", "info", "lintian", "locale", "man")]
UNREAD += ["/usr/lib/*/gconv/*"]
VARIANTS = {"": "", "-ray": "ray[default]"}  # what they have besides; KubeRay needs Ray's dashboard


def make_base(name: str, variant: str = "essential", *packages: str) -> None:
    """Make an image of a minimal Debian with Python, of this machine's architecture.

    Args:
        name: Of the image.
        variant: What is in it besides, in mmdebstrap's words.
        packages: Debian's, that it has too.
    """
    tar = BUILD / "base.tar"
    exclude = [f"--dpkgopt=path-exclude={path}" for path in UNREAD]
    include = ",".join((*PACKAGES, *packages))
    command = ["mmdebstrap", "--quiet", f"--variant={variant}", *exclude, f"--include={include}"]
    run(*command, SUITE, str(tar))
    container = run("buildah", "from", "scratch")
    run("buildah", "add", "--quiet", container, str(tar), "/")
    run("buildah", "commit", "--quiet", "--rm", container, name)
    tar.unlink()


def build(name: str, base: str, *options: str) -> None:
    """Build the Containerfile.

    Args:
        name: Of the image.
        base: The image on which it stands.
        options: Those of `buildah build`.
    """
    certificates = "/etc/ssl/certs:/etc/ssl/certs:ro"  # also those that this machine alone trusts
    command = ["buildah", "build", "--isolation=chroot", "--volume", certificates]
    run(*command, f"--build-arg=BASE={base}", f"--tag={name}", *options, str(ROOT))


def run(*command: str) -> str:
    """Run a command, and return what it prints.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main() -> None:
    """Make the base, and each variant on it."""
    shutil.rmtree(BUILD, ignore_errors=True)
    wheels = BUILD / "wheel/wheels"
    wheels.mkdir(parents=True)
    machine = run("uname", "-m")
    (wheel,) = DIST.glob(f"loadgen-*-{PYTHON}-{PYTHON}-*_{machine}.whl")
    for file in (wheel, *DIST.glob("others/*.whl")):
        shutil.copy(file, wheels)
    make_base(BASE)
    for variant, packages in VARIANTS.items():
        name = f"localhost/loadgen:{__version__}{variant}"
        context = f"--build-context=wheel={BUILD / 'wheel'}"
        build(name, BASE, context, f"--build-arg=PACKAGES={packages}")
        archive = DIST / f"loadgen{variant}.oci.tar"
        run(
            "buildah",
            "push",
            "--quiet",
            name,
            f"oci-archive:{archive}:loadgen:{__version__}{variant}",
        )
        print(
            f"made {archive.relative_to(ROOT)}: {archive.stat().st_size / 1e6:.0f} MB", flush=True
        )


if __name__ == "__main__":
    main()
