"""The public test kit: conformance suites for sources and sinks, and a sink with scripted failures.

A connector is tested by a subclass of a suite and a fixture, against its real system:

    class TestShelf(SinkSuite):
        @pytest.fixture
        def system(self, tmp_path):
            return ShelfSystem(tmp_path)
"""
