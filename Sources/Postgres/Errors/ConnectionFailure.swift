internal import Glibc

/// The reason why a connection to PostgreSQL could not be opened. It contains no text from the network.
public enum ConnectionFailure: Error, Sendable, Hashable {
    /// The server rejected the connection with this code.
    ///
    /// Examples: 28P01 (wrong password), 3D000 (no such database), 53300 (too many connections).
    case server(SQLState)
    /// The server's name could not be resolved. The code is one of `getaddrinfo`.
    case resolver(CInt)
    /// A system call failed with this `errno`.
    case system(CInt)
    /// The TLS handshake failed.
    case tls(TLSReason)
    /// The server did not reply within the time limit for opening.
    case timedOut
    /// The server requires a password and none is configured.
    case passwordMissing
    /// libpq rejects the value of this keyword.
    case option(String)
    /// No server has the properties that `target_session_attrs` requires.
    case otherKindOfServer
    /// The connection was opened, but its setup failed. The value is that error's description.
    case unsuitable(String)
    /// Any other reason.
    case other

    /// The reason why TLS failed.
    public enum TLSReason: Sendable, Hashable {
        case untrustedCertificate, certificateOfAnotherHost, notOffered, missingRootCertificate, other
    }
}

extension ConnectionFailure {
    /// True if only an operator can fix it: the server denies access, or the requested object does not exist.
    public var isForGood: Bool {
        switch self {
        case .passwordMissing, .tls, .option: true
        case .server(let state):
            state.errorClass == "28" || state.isOfSettings
                || [.unknownDatabase, .insufficientPrivilege].contains(state)
        default: false
        }
    }

    /// Parses libpq's message about a failed connection. libpq provides no code for these failures.
    ///
    /// With several servers the message covers all of them. A code from a server takes precedence.
    init(message: String) {
        self =
            Self.serverState(in: message).map { .server($0) } ?? Self.unknownOption(in: message).map { .option($0) }
            ?? Self.tlsReason(in: message).map { .tls($0) } ?? Self.clientReason(in: message)
    }

    /// Finds the last code from a server in the message.
    ///
    /// With `PQERRORS_SQLSTATE` the server's part of a line is its severity, a colon, two blanks and the code.
    private static func serverState(in message: String) -> SQLState? {
        for line in message.split(separator: "\n").reversed() {
            guard let range = line.ranges(of: ":  ").last else { continue }
            let code = line[range.upperBound...]
            if code.utf8.count == 5, code.utf8.allSatisfy({ (48...57).contains($0) || (65...90).contains($0) }) {
                return SQLState(String(code))
            }
        }
        return nil
    }

    /// Returns the keyword whose value libpq rejects, without the value: with a typing error in a URL it can be the
    /// password.
    static func unknownOption(in message: String) -> String? {
        let reports = [
            #/invalid (\w+) value: "/#, #/for connection option "(\w+)"/#, #/(?:^|\n)(\w+) value "[^"]*" invalid when/#,
            #/^(?:weak )?(\w+) "[^"]*" may not be used with/#, #/invalid (port) number: "/#,
            #/could not match \d+ \w+ \w+ to \d+ (host)/#, #/definition of (service) "/#, #/(service) file "/#,
        ]
        return reports.lazy.compactMap { message.firstMatch(of: $0).map { String($0.1) } }.first
    }

    private static func tlsReason(in message: String) -> TLSReason? {
        guard message.contains("SSL") || message.contains("certificate") else { return nil }
        if message.contains("verify failed") { return .untrustedCertificate }
        if message.contains("does not match host name") { return .certificateOfAnotherHost }
        if message.contains("does not support SSL") { return .notOffered }
        if message.contains("root certificate file") { return .missingRootCertificate }
        return .other
    }

    private static func clientReason(in message: String) -> ConnectionFailure {
        if message.contains("no password supplied") { return .passwordMissing }
        if message.contains("timeout expired") { return .timedOut }
        for words in ["session is read-only", "session is not read-only", "in hot standby mode"] {
            if message.contains(words) { return .otherKindOfServer }
        }
        // The C library returns the same texts for the codes.
        for code in [EAI_NONAME, EAI_AGAIN, EAI_FAIL] where message.contains(String(cString: gai_strerror(code))) {
            return .resolver(code)
        }
        for code in 1...133 as ClosedRange<CInt> where message.contains(String(cString: strerror(code))) {
            return .system(code)
        }
        return .other
    }
}

extension ConnectionFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .server(.tooManyConnections):
            "the server refused: SQLSTATE 53300, it has no connection left: raise max_connections or the CONNECTION LIMIT of "
                + "the role or the database, or lower the connections of each node"
        case .server(.invalidPassword): "the server refused: SQLSTATE 28P01, the password of this role is wrong"
        case .server(.invalidAuthorization):
            "the server refused: SQLSTATE 28000, it rejects this role from this address: check the role and pg_hba.conf"
        case .server(.unknownDatabase): "the server refused: SQLSTATE 3D000, there is no such database"
        case .server(.cannotConnectNow): "the server refused: SQLSTATE 57P03, it is starting or stopping"
        case .server(.insufficientPrivilege):
            "the server refused: SQLSTATE 42501, this role may not connect to the database, or not change a setting in "
                + "`options` of the database URL"
        case .server(let state) where state.isOfSettings:
            "the server refused: SQLSTATE \(state), it rejects a setting in `options` of the database URL (or PGOPTIONS)"
        case .server(let state): "the server refused: SQLSTATE \(state.named)"
        case .resolver(let code): "its name was not found: \(String(cString: gai_strerror(code)))"
        case .system(let code): "\(String(cString: strerror(code))) (errno \(code))"
        case .tls(.untrustedCertificate): "TLS: the server's certificate is not trusted"
        case .tls(.certificateOfAnotherHost): "TLS: the server's certificate is for another host"
        case .tls(.notOffered): "TLS: the server does not offer it"
        case .tls(.missingRootCertificate): "TLS: the root certificate is missing"
        case .tls(.other): "TLS: the handshake failed"
        case .timedOut: "no answer in time"
        case .passwordMissing:
            "the server requires a password, and none is configured (libpq ignores a ~/.pgpass that others can read)"
        case .option("host"): "the database URL has lists of hosts, addresses and ports of different lengths"
        case .option("port"): "the port in the database URL is not a number from 1 to 65535"
        case .option("service"): "the service in the database URL does not exist"
        case .option(let keyword): "the value of \(keyword) in the database URL is unknown to libpq"
        case .otherKindOfServer: "no server matches target_session_attrs"
        case .unsuitable(let reason): "the server was reached, but \(reason)"
        case .other: "libpq reported no known reason"
        }
    }
}
