internal import HTTPCore
internal import Postgres

/// `POST /v1/kdf`: returns the KDF parameters of a userid. Known and unknown userids take the same work, response time
/// and form of reply.
struct ShowKDFParameters: OpenEndpoint {
    private let database: PostgresClient
    private let decoys: DecoyParameters
    private let saltPrefix: String

    init(_ parts: Dependencies) {
        database = parts.database
        decoys = parts.installation.decoys
        saltPrefix = parts.configuration.saltPrefix
    }

    func respond(to request: Request) async throws -> Response {
        let userid = try JSONBody.read(request) { try $0.required("userid", Userid.init(json:)) }
        let find = FindKDFParameters(userid: userid, slot: decoys.slot(for: userid))
        let row = try await ResponseTiming.lookup.always { try await database.execute(find).first }
        guard let row else { throw InstallationError.missing }
        return .json { writer in
            writer.object { writer in
                writer.member("algorithm", KDFPolicy.algorithm)
                writer.member("saltPrefix", saltPrefix)
                writer.member("salt", saltPrefix + userid.string)
                writer.member("iterations", Int(row.iterations ?? row.decoyIterations))
                writer.member("keyLength", KDFPolicy.keyLength)
            }
        }
    }
}
