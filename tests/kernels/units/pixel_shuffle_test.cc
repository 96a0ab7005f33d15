// DepthToSpace and SpaceToDepth in both orders of channels, and the same as several nodes.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kPixelShuffleCases = {
    {.name = "depth_to_space_dcr",
     .model = "(float[1,12,3,5] x) => (float[1,3,6,10] y) { y = DepthToSpace<blocksize = 2>(x) }",
     .units = {"ChannelToSpace"},
     .tolerance = 1e-3},
    {.name = "depth_to_space_crd",
     .model = "(float[2,18,3,5] x) => (float[2,2,9,15] y) "
              "{ y = DepthToSpace<blocksize = 3, mode = \"CRD\">(x) }",
     .target = "h16",
     .units = {"PixelShuffle"},
     .tolerance = 1e-3},
    {.name = "space_to_depth",
     .model = "(float[2,3,6,8] x) => (float[2,12,3,4] y) { y = SpaceToDepth<blocksize = 2>(x) }",
     .units = {"SpaceToChannel"},
     .tolerance = 1e-3},
    {.name = "crd_of_8_is_the_last_listed",
     .model = "(float[1,64,2,2] x) => (float[1,1,16,16] y) "
              "{ y = DepthToSpace<blocksize = 8, mode = \"CRD\">(x) }",
     .units = {"PixelShuffle"},
     .tolerance = 1e-3},
    {.name = "crd_of_5_is_refused",
     .model = "(float[1,25,3,5] x) => (float[1,1,15,25] y) "
              "{ y = DepthToSpace<blocksize = 5, mode = \"CRD\">(x) }",
     .refused_by = "pixel-shuffle-factor"},
    {.name = "crd_of_6_is_refused",
     .model = "(float[1,36,3,5] x) => (float[1,1,18,30] y) "
              "{ y = DepthToSpace<blocksize = 6, mode = \"CRD\">(x) }",
     .refused_by = "pixel-shuffle-factor"},
    {.name = "dcr_of_6_factors",
     .model = "(float[1,36,3,5] x) => (float[1,1,18,30] y) { y = DepthToSpace<blocksize = 6>(x) }",
     .units = {"ChannelToSpace"},
     .tolerance = 1e-3},
    {.name = "dcr_of_5_is_refused",
     .model = "(float[1,25,3,5] x) => (float[1,1,15,25] y) { y = DepthToSpace<blocksize = 5>(x) }",
     .refused_by = "channel-to-space-factor"},
    {.name = "space_to_depth_of_5_is_refused",
     .model = "(float[1,3,10,10] x) => (float[1,75,2,2] y) { y = SpaceToDepth<blocksize = 5>(x) }",
     .refused_by = "space-to-channel-factor"},
    {.name = "shuffle_written_out",
     .model = "(float[2,12,3,5] x) => (float[2,3,6,10] y) "
              "<int64[6] a = {2,3,2,2,3,5}, int64[4] b = {2,3,6,10}> "
              "{ s = Reshape(x, a) t = Transpose<perm = [0,1,4,2,5,3]>(s) y = Reshape(t, b) }",
     .units = {"PixelShuffle"},
     .tolerance = 1e-3},
    {.name = "channels_to_space_written_out",
     .model = "(float[2,18,3,5] x) => (float[2,3,6,15] y) "
              "<int64[6] a = {2,2,3,3,3,5}, int64[4] b = {2,3,6,15}> "
              "{ s = Reshape(x, a) t = Transpose<perm = [0,3,4,1,5,2]>(s) y = Reshape(t, b) }",
     .target = "h16",
     .units = {"ChannelToSpace"},
     .tolerance = 1e-3},
    {.name = "unshuffle_written_out",
     .model = "(float[2,3,6,12] x) => (float[2,18,3,4] y) "
              "<int64[6] a = {2,3,3,2,4,3}, int64[4] b = {2,18,3,4}> "
              "{ s = Reshape(x, a) t = Transpose<perm = [0,1,3,5,2,4]>(s) y = Reshape(t, b) }",
     .units = {"PixelUnshuffle"},
     .tolerance = 1e-3},
    {.name = "space_to_channels_written_out",
     .model = "(float[2,3,6,12] x) => (float[2,12,3,6] y) "
              "<int64[6] a = {2,3,3,2,6,2}, int64[4] b = {2,12,3,6}> "
              "{ s = Reshape(x, a) t = Transpose<perm = [0,3,5,1,2,4]>(s) y = Reshape(t, b) }",
     .units = {"SpaceToChannel"},
     .tolerance = 1e-3},
    {.name = "unshuffle_by_5_written_out",
     .model = "(float[1,1,5,10] x) => (float[1,25,1,2] y) "
              "<int64[6] a = {1,1,1,5,2,5}, int64[4] b = {1,25,1,2}> "
              "{ s = Reshape(x, a) t = Transpose<perm = [0,1,3,5,2,4]>(s) y = Reshape(t, b) }",
     .units = {"Transpose"}},
    {.name = "nothing_written_out",
     .model = "(float[2,12,3,5] x) => (float[2,3,0,10] y) <int64[1] z = {0}, int64[1] at = {2}, "
              "int64[6] a = {2,3,2,2,0,5}, int64[4] b = {2,3,0,10}> "
              "{ n = Slice(x, z, z, at) s = Reshape<allowzero = 1>(n, a) "
              "t = Transpose<perm = [0,1,4,2,5,3]>(s) y = Reshape<allowzero = 1>(t, b) }",
     .refused_by = "rank"},
    {.name = "another_order_is_no_shuffle",
     .model = "(float[2,12,3,5] x) => (float[2,3,6,10] y) "
              "<int64[6] a = {2,3,2,2,3,5}, int64[4] b = {2,3,6,10}> "
              "{ s = Reshape(x, a) t = Transpose<perm = [0,1,4,3,5,2]>(s) y = Reshape(t, b) }",
     .units = {"Transpose", "Transpose"}},
};

INSTANTIATE_TEST_SUITE_P(PixelShuffle, KernelTest, testing::ValuesIn(kPixelShuffleCases), CaseName);

}  // namespace
}  // namespace anemone
