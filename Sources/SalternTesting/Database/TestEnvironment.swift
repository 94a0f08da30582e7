internal import Glibc

/// Where tests find PostgreSQL.
public enum TestEnvironment {
    /// Why a test that needs PostgreSQL cannot run.
    public struct Missing: Error, CustomStringConvertible {
        public var description: String {
            "SALTERN_TEST_DATABASE_URL is not set: run scripts/test, which starts a private PostgreSQL and sets it"
        }
    }

    /// The URL of a superuser on a PostgreSQL that tests may fill with databases and roles.
    /// - Throws: ``Missing``; the test then fails, because a test that is skipped proves nothing.
    public static func administratorURL() throws -> String {
        guard let value = getenv("SALTERN_TEST_DATABASE_URL") else { throw Missing() }
        return String(cString: value)
    }

    /// When the PostgreSQL of ``administratorURL()`` is the coordinator of a cluster, the URLs of its workers' superusers
    /// (`SALTERN_TEST_CLUSTER_WORKERS`, with spaces between them). Databases are made on all nodes then, and distributed.
    static var workerURLs: [String] {
        guard let value = getenv("SALTERN_TEST_CLUSTER_WORKERS") else { return [] }
        return String(cString: value).split(separator: " ").map(String.init)
    }

    /// Whether databases are spread over the nodes of a cluster.
    public static var isCluster: Bool { !workerURLs.isEmpty }

    /// Whether servers connect to a worker instead of the coordinator (`SALTERN_TEST_CLUSTER_ENTRY=worker`).
    static var entersByWorker: Bool {
        getenv("SALTERN_TEST_CLUSTER_ENTRY").map { String(cString: $0) == "worker" } ?? false
    }
}
