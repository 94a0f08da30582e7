import CommandLineKit
import Postgres

/// The roles and the database that an installation needs before a migration or restore.
struct DatabaseRoles {
    let owner: PostgresConfiguration
    let server: PostgresConfiguration?

    /// Creates missing ones. Existing ones keep their properties and passwords.
    func make(as superuser: PostgresConfiguration.ProgramConnection, _ console: Console) throws {
        guard let ownerName = owner.user, let database = owner.databaseName else {
            throw CommandFailure("SALTERN_OWNER_DATABASE_URL names no role: postgresql://ROLE@…")
        }
        let names = [
            "SALTERN_ROLE_OWNER": ownerName, "SALTERN_ROLE_OWNER_PASSWORD": owner.programConnection.password ?? "",
            "SALTERN_ROLE_SERVER": server?.user ?? ownerName,
            "SALTERN_ROLE_SERVER_PASSWORD": server?.programConnection.password ?? "",
            "SALTERN_ROLE_DATABASE": database,
        ]
        let program = DatabaseProgram("psql", console, password: superuser.password, environment: names)
        do {
            try program.run(
                ["--no-psqlrc", "--quiet", "--no-password", "--set", "ON_ERROR_STOP=1", "--dbname", superuser.string],
                input: PostgresConfiguration.sessionScript + "\n" + Self.script)
        } catch let failure as CommandFailure where failure.code == "failed" {
            throw CommandFailure(failure.messages.map { "SALTERN_SUPERUSER_DATABASE_URL: \($0)" })
        }
    }

    /// Keeps passwords out of the server's log. `\gexec` executes each row, so only missing objects have one.
    private static let script = #"""
        SET log_statement = 'none';
        SET log_min_duration_statement = -1;
        SET log_min_error_statement = 'panic';
        \getenv owner SALTERN_ROLE_OWNER
        \getenv owner_password SALTERN_ROLE_OWNER_PASSWORD
        \getenv server SALTERN_ROLE_SERVER
        \getenv server_password SALTERN_ROLE_SERVER_PASSWORD
        \getenv database SALTERN_ROLE_DATABASE
        SELECT 'CREATE ROLE saltern_server NOLOGIN'
            WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'saltern_server')
        \gexec
        SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', :'owner', nullif(:'owner_password', ''))
            WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'owner')
        \gexec
        SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', :'server', nullif(:'server_password', ''))
            WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'server')
        \gexec
        SELECT format('GRANT saltern_server TO %I', :'server') WHERE :'server' <> :'owner'
        \gexec
        SELECT format('CREATE DATABASE %I OWNER %I ENCODING %L TEMPLATE template0', :'database', :'owner', 'UTF8')
            WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database')
        \gexec
        REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
        GRANT CONNECT ON DATABASE :"database" TO saltern_server;
        GRANT CONNECT, CREATE, TEMPORARY ON DATABASE :"database" TO :"owner";
        """#
}
