"""What a build is told of this machine's way to a package index."""

from e2e.cluster import pipconfig

LISTING = """:env:.find-links='/wheels'
:env:.timeout='180'
global.index-url='https://index.example/simple'
global.timeout='10'
global.extra-index-url='\\nhttps://one.example/simple\\nhttps://two.example/simple'
install.no-deps='true'
"""


def test_the_environment_wins_over_the_file() -> None:
    assert pipconfig.parse(LISTING)["timeout"] == "180"


def test_passes_on_where_the_index_is_and_nothing_of_this_machine() -> None:
    assert pipconfig.render(pipconfig.parse(LISTING), trusted=True).splitlines() == [
        "[global]",
        "index-url = https://index.example/simple",
        "extra-index-url = https://one.example/simple https://two.example/simple",
        "timeout = 180",
        "cert = /run/secrets/roots",
    ]


def test_nothing_set_is_an_empty_section() -> None:
    assert pipconfig.render(pipconfig.parse(""), trusted=False) == "[global]\n"
