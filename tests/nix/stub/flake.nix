# Stands in for nixpkgs, so that `nix flake check` can evaluate our flake without a network: each attribute that the
# flake uses is here, and nothing can be built. A name that our flake begins to use must be added.
{
  description = "a stub of nixpkgs";

  outputs =
    { self }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      genAttrs =
        names: function:
        builtins.listToAttrs (
          map (name: {
            inherit name;
            value = function name;
          }) names
        );
      stub =
        system: name:
        derivation {
          inherit system name;
          builder = "/bin/false";
        };
    in
    {
      lib = {
        inherit genAttrs;
      };
      legacyPackages = genAttrs systems (
        system:
        genAttrs [
          "binutils"
          "cargo"
          "gcc"
          "git"
          "go"
          "nix"
          "nixfmt"
          "nodejs"
          "python3"
        ] (stub system)
        // {
          # The arguments that matter are forced, so that a wrong name fails the check.
          mkShell =
            { packages, hardeningDisable ? [ ] }:
            builtins.deepSeq (map (package: package.name) packages) (stub system "shell");
        }
      );
    };
}
