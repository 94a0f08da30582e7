public import Cryptography
internal import Foundation

/// The parameters of key derivation that this app accepts from a server. A hostile server could request a key that is
/// easy to guess.
///
/// Example: "Settings" in docs/app.md.
public struct StretchingRule: Sendable {
    /// The salt prefix that the app contains or has received at its first contact.
    public var saltPrefix: String
    /// The host of the salt prefix; nil for any host. Keys for another host are not derived: with this prefix, that
    /// host would get this site's password key from a person who uses one password.
    public var host: String?
    /// The lowest number of iterations that this app has ever used.
    public var minimumIterations: Int
    /// The maximum number of iterations that a new credential gets because the server requires them. Iterations never
    /// fall, so without this limit one false reply could make every later log-in of the account slow. The caller of
    /// ``Vault/signUp(_:userid:password:iterations:invite:)`` may use more.
    public var automaticIterationLimit: Int
    /// Derives 64 bytes from a secret, a salt and a number of iterations. Tests use one iteration.
    var derivation: @Sendable (SecureBytes, String, Int) async -> SecureBytes = Self.derive

    /// The default of ``automaticIterationLimit``: four times the recommended iterations.
    public static let defaultAutomaticIterationLimit = 4 * PBKDF2.recommendedIterations

    /// Creates a rule. Each parameter is the property of its name.
    public init(
        saltPrefix: String, host: String? = nil, minimumIterations: Int = PBKDF2.recommendedIterations,
        automaticIterationLimit: Int = StretchingRule.defaultAutomaticIterationLimit
    ) {
        self.saltPrefix = saltPrefix
        self.host = host
        self.minimumIterations = minimumIterations
        self.automaticIterationLimit = automaticIterationLimit
    }

    /// The reason for which parameters are rejected.
    public enum Refusal: Error, Hashable, Sendable {
        /// The algorithm is not `PBKDF2-HMAC-SHA256`.
        case algorithm
        /// The prefix differs from ``StretchingRule/saltPrefix``.
        case saltPrefix
        /// The salt is not the prefix followed by the userid.
        case salt
        /// The iterations are below the app's minimum.
        case iterations(minimum: Int)
        /// The iterations are above the app's maximum.
        case tooManyIterations(maximum: Int)
        /// The password key does not have 32 bytes.
        case keyLength
        /// The host of the transport is not that of the salt prefix.
        case host
    }

    /// Checks the transport's host.
    /// - Throws: ``Refusal/host`` for another host. A transport that does not name its host is accepted.
    func check(_ transport: any HTTPTransport) throws(Refusal) {
        guard let host, let actual = transport.host else { return }
        guard host.lowercased() == actual.lowercased() else { throw .host }
    }

    /// The maximum number of iterations that a server may require, against overload of the device.
    public static let maximumIterations = 10_000_000

    /// Checks the server's parameters against this rule.
    /// - Throws: ``Refusal`` for parameters that this app would not use itself.
    public func check(_ parameters: KDFParameters, userid: String) throws(Refusal) {
        guard parameters.algorithm == "PBKDF2-HMAC-SHA256" else { throw .algorithm }
        guard parameters.saltPrefix == saltPrefix else { throw .saltPrefix }
        guard parameters.salt.utf8.elementsEqual((saltPrefix + userid).utf8) else { throw .salt }
        try check(iterations: parameters.iterations)
        guard parameters.keyLength == 32 else { throw .keyLength }
    }

    func check(iterations: Int) throws(Refusal) {
        guard iterations >= minimumIterations else { throw .iterations(minimum: minimumIterations) }
        guard iterations <= Self.maximumIterations else { throw .tooManyIterations(maximum: Self.maximumIterations) }
    }

    /// Limits the iterations of a recovery. It sets at least as many as the account has, and only the server names that
    /// number.
    func check(recovered iterations: Int, over known: Int) throws(VaultError) {
        let limit = max(automaticIterationLimit, known)
        guard iterations <= limit else { throw .untrustworthy(.tooManyIterations(maximum: limit)) }
    }

    /// Derives the keys of a password. It takes seconds, and does not block the caller's thread.
    /// - Throws: ``Refusal/iterations(minimum:)``, ``Refusal/tooManyIterations(maximum:)``.
    public func stretch(
        _ password: Password, userid: String, iterations: Int
    ) async throws(Refusal) -> StretchedPassword {
        try check(iterations: iterations)
        return StretchedPassword(await derivation(password.bytes, saltPrefix + userid, iterations))
    }

    @Sendable static func derive(_ secret: SecureBytes, _ salt: String, _ iterations: Int) async -> SecureBytes {
        await withCheckedContinuation { continuation in
            DispatchQueue.global(qos: .userInitiated).async {
                let stretched = try? PBKDF2.deriveKey(
                    from: secret, salt: salt.utf8, unsafeUncheckedIterations: iterations, byteCount: 64)
                // PBKDF2 fails only for invalid lengths and counts, which are checked before.
                continuation.resume(returning: stretched ?? SecureRandom.secureBytes(64))
            }
        }
    }
}
