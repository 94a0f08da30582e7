/// https://developer.apple.com/documentation/cryptokit/cryptokiterror
public enum CryptoKitError: Error {
    case incorrectKeySize
    case incorrectParameterSize
    case authenticationFailure
    case underlyingCoreCryptoError(error: Int32)
}
